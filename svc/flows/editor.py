"""Finds the user's text editor and runs it."""

from __future__ import annotations

import shlex
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

from localstore.core.errors import ClientError, UsageError

FALLBACKS = ("vi", "nano")


def editor(environment: Mapping[str, str], instead: str) -> list[str]:
    """Return the command line of the editor. It is taken from VISUAL or EDITOR, or is an installed editor.
    Raises UsageError if there is none. `instead` is the end of the error's sentence."""
    for named in (*_read_variables(environment), *FALLBACKS):
        words = _words(named, instead)
        program = shutil.which(words[0]) if words else None
        if program is not None:
            return [program, *words[1:]]
        if words and named not in FALLBACKS:
            raise UsageError(f"there is no editor {words[0]}; set EDITOR, or {instead}")
    raise UsageError(f"there is no editor here; set EDITOR, or {instead}")


def is_named(environment: Mapping[str, str]) -> bool:
    """Return whether the user named an editor by a variable. Such an editor may work without a terminal, as
    git also assumes."""
    return any(_read_variables(environment))


def _read_variables(environment: Mapping[str, str]) -> tuple[str, str]:
    """Return the values of (VISUAL, EDITOR), where "" means not set. VISUAL counts only if TERM names a
    terminal that can draw."""
    visual = environment.get("VISUAL", "") if environment.get("TERM", "dumb") != "dumb" else ""
    return visual, environment.get("EDITOR", "")


def _words(named: str, instead: str) -> list[str]:
    try:
        return shlex.split(named)
    except ValueError:
        raise UsageError(f"the editor {named} has an open quote; set EDITOR anew, or {instead}") from None


def run(command: list[str], file: Path, failed: str) -> None:
    """Run the editor on the file, and wait for its end. Raises ClientError if it fails. `failed` is the end
    of the error's sentence."""
    try:
        code = subprocess.run([*command, str(file)]).returncode
    except OSError as error:
        raise ClientError(f"the editor {command[0]} does not start ({error.strerror}); {failed}") from None
    if code != 0:
        raise ClientError(f"the editor {command[0]} ended with {code}; {failed}")
