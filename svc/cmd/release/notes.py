"""The options that say the notes of a release."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from localstore.core.errors import UsageError
from localstore.core.limits import NOTES_BYTES
from localstore.core.paths import terminal_safe

Notes = Annotated[str | None, typer.Option("-n", "--notes", metavar="TEXT", help="The notes")]
NotesFile = Annotated[
    str | None,
    typer.Option("-F", "--notes-file", metavar="FILE", help="The file that holds them; - is standard input"),
]


def notes_of(text: str | None, file: str | None) -> str | None:
    """The notes that the options say; None without them. UsageError for both, for a file that cannot be read
    and for notes that are too long."""
    if text is not None and file is not None:
        raise UsageError("--notes and --notes-file both say the notes; use one of them")
    if text is None and file is None:
        return None
    raw = _read(file) if file is not None else (text or "").encode("utf-8", "surrogateescape")
    if len(raw) > NOTES_BYTES:
        raise UsageError(f"notes have at most {NOTES_BYTES} bytes")
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError:
        raise UsageError("the notes are not UTF-8 text") from None


def _read(file: str) -> bytes:
    try:
        if file == "-":
            return sys.stdin.buffer.read(NOTES_BYTES + 1)
        with Path(file).open("rb") as opened:
            return opened.read(NOTES_BYTES + 1)
    except OSError as error:
        raise UsageError(f"{terminal_safe(file)} cannot be read ({error.strerror})") from None
