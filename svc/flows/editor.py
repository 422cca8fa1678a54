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
    """The editor command: VISUAL, EDITOR, or an installed one. Raises UsageError, ending in `instead`, if
    there is none."""
    visual = environment.get("VISUAL") if environment.get("TERM", "dumb") != "dumb" else None
    for named in (visual, environment.get("EDITOR"), *FALLBACKS):
        words = _words(named or "", instead)
        program = shutil.which(words[0]) if words else None
        if program is not None:
            return [program, *words[1:]]
        if words and named not in FALLBACKS:
            raise UsageError(f"there is no editor {words[0]}; set EDITOR, or {instead}")
    raise UsageError(f"there is no editor here; set EDITOR, or {instead}")


def _words(named: str, instead: str) -> list[str]:
    try:
        return shlex.split(named)
    except ValueError:
        raise UsageError(f"the editor {named} has an open quote; set EDITOR anew, or {instead}") from None


def run(command: list[str], file: Path, failed: str) -> None:
    """Run the editor on the file. Raises ClientError, ending in `failed`, if it fails."""
    try:
        code = subprocess.run([*command, str(file)]).returncode
    except OSError as error:
        raise ClientError(f"the editor {command[0]} does not start ({error.strerror}); {failed}") from None
    if code != 0:
        raise ClientError(f"the editor {command[0]} ended with {code}; {failed}")
