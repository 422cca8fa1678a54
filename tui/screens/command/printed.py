"""Formats the lines that a command has printed: heads of tables, errors, and codes that the user has to
type."""

from __future__ import annotations

import re
from collections.abc import Sequence

from tui.text import Part, fold, hang, safe
from tui.wording import in_app

Line = tuple[Part, ...]
BLANK: Line = (("", "text"),)
_HEAD = re.compile(r"[A-Z][A-Z ]*(?:  +[A-Z][A-Z ]*)+")  # the names of a table's columns
_LEFT_OUT = re.compile(r"not shown at \d+ columns: .*")
_ERROR = "svc: "
# What comes before a code, the code, and what comes after it, in the sentences of svc that have one.
_CODES = (
    re.compile(r"(Open \S+ and enter the code) (\S+)()"),
    re.compile(r"()(\S+) (works once, for ten minutes\. .*)"),
    re.compile(r"(Digits:) (\d{3} \d{3})()"),
)


def is_head(line: str) -> bool:
    """Whether a line is the head of a table."""
    return _HEAD.fullmatch(line.rstrip()) is not None


def rows_of(lines: Sequence[str], width: int, failed: bool) -> list[Line]:
    """Returns the rows of a command's output, wrapped to `width` columns. `failed`: whether the command has
    failed."""
    return [row for line in lines for row in _rows(line, width, failed)]


def _rows(line: str, width: int, failed: bool) -> list[Line]:
    for pattern in _CODES:
        if match := pattern.fullmatch(line):
            return _code_rows(match[1], match[2], match[3], width)
    role = "text"
    if is_head(line):
        role = "title"
    elif _LEFT_OUT.fullmatch(line):
        role = "dim"
    elif failed and line.startswith(_ERROR):
        first, *rest = fold(((safe(in_app(line.removeprefix(_ERROR))), "text"),), width - 2)
        return [(("✗ ", "bad"), *first), *((("  ", "text"), *row) for row in rest)]
    return [((row, role),) for row in hang(line, width)]


def _code_rows(before: str, code: str, after: str, width: int) -> list[Line]:
    """Returns a code on a line of its own, so that the user finds it at a glance. `before` and `after`: the
    text around it."""
    rows: list[Line] = [((row, "text"),) for row in (hang(before, width) if before else ())]
    rows += [BLANK, (("   ", "text"), (f" {safe(code)} ", "tab")), BLANK]
    return [*rows, *(((row, "text"),) for row in (hang(after, width) if after else ()))]
