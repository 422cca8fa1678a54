"""The options for the notes of a release."""

from __future__ import annotations

from typing import Annotated

import typer

from localstore.core.limits import NOTES_BYTES
from svc.cmd.frame.text_options import text_of

Notes = Annotated[str | None, typer.Option("-n", "--notes", metavar="TEXT", help="The notes")]
NotesFile = Annotated[
    str | None,
    typer.Option("-F", "--notes-file", metavar="FILE", help="The file that holds them; - is standard input"),
]


def notes_of(text: str | None, file: str | None) -> str | None:
    """The notes from `--notes` or `--notes-file`; None if neither is given. Raises UsageError if both are
    given, if the file cannot be read, and for notes that are too long."""
    return text_of(text, file, ("--notes", "--notes-file"), "the text of the notes", NOTES_BYTES)
