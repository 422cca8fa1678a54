"""Reads text that the user gives as the value of an option, in a file, or on standard input."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from localstore.core.errors import UsageError
from localstore.core.model.limits import ISSUE_BODY_BYTES
from localstore.core.paths import terminal_safe

Body = Annotated[str | None, typer.Option("-b", "--body", metavar="TEXT", help="The text")]
BodyFile = Annotated[
    str | None,
    typer.Option("-F", "--body-file", metavar="FILE", help="The file that holds it; - is standard input"),
]


def body_of(text: str | None, file: str | None) -> str | None:
    """Return the text given by `--body` or `--body-file`; None if neither is given."""
    return text_of(text, file, ("--body", "--body-file"), "a text", ISSUE_BODY_BYTES)


def text_of(text: str | None, file: str | None, options: tuple[str, str], what: str, cap: int) -> str | None:
    """Return the text given by one of two options, either as `text` or as the name of a `file`. None if
    neither is given. `options` are the names of the two options, and `what` is the name of the text, for
    errors. Raises UsageError if both are given, if the file cannot be read, or for more than `cap` bytes."""
    if text is not None and file is not None:
        raise UsageError(f"{options[0]} and {options[1]} both say the same; use one of them")
    if text is None and file is None:
        return None
    raw = _read(file, cap) if file is not None else (text or "").encode("utf-8", "surrogateescape")
    if len(raw) > cap:
        raise UsageError(f"{what} has at most {cap} bytes")
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError:
        raise UsageError(f"what {options[1] if file else options[0]} says is not UTF-8 text") from None


def _read(file: str, cap: int) -> bytes:
    try:
        if file == "-":
            return sys.stdin.buffer.read(cap + 1)
        with Path(file).open("rb") as opened:
            return opened.read(cap + 1)
    except OSError as error:
        raise UsageError(f"{terminal_safe(file)} cannot be read ({error.strerror})") from None
