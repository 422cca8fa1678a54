"""The user's editor."""

from __future__ import annotations

import shlex
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

from localstore.core.errors import ClientError, UsageError

FALLBACKS = ("vi", "nano")


def editor(environment: Mapping[str, str], instead: str) -> list[str]:
    """The editor command: VISUAL, EDITOR, or an installed editor. Raises UsageError, which ends in `instead`,
    if there is none."""
    for named in (*_named(environment), *FALLBACKS):
        words = _words(named, instead)
        program = shutil.which(words[0]) if words else None
        if program is not None:
            return [program, *words[1:]]
        if words and named not in FALLBACKS:
            raise UsageError(f"there is no editor {words[0]}; set EDITOR, or {instead}")
    raise UsageError(f"there is no editor here; set EDITOR, or {instead}")


def is_named(environment: Mapping[str, str]) -> bool:
    """Whether the user named an editor, which then may be a program that needs no terminal, as for git."""
    return any(_named(environment))


def _named(environment: Mapping[str, str]) -> tuple[str, str]:
    """The editors that the user named, "" for none; VISUAL counts only where a terminal can draw."""
    visual = environment.get("VISUAL", "") if environment.get("TERM", "dumb") != "dumb" else ""
    return visual, environment.get("EDITOR", "")


def _words(named: str, instead: str) -> list[str]:
    try:
        return shlex.split(named)
    except ValueError:
        raise UsageError(f"the editor {named} has an open quote; set EDITOR anew, or {instead}") from None


def run(command: list[str], file: Path, failed: str) -> None:
    """Run the editor on the file. Raises ClientError, which ends in `failed`, if it fails."""
    try:
        code = subprocess.run([*command, str(file)]).returncode
    except OSError as error:
        raise ClientError(f"the editor {command[0]} does not start ({error.strerror}); {failed}") from None
    if code != 0:
        raise ClientError(f"the editor {command[0]} ended with {code}; {failed}")
