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
_NAME_OF_FILE = re.compile(r'diff --git |(--- "?a|\+\+\+ "?b)/|(---|\+\+\+) /dev/null$')
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


def rows_of(lines: Sequence[str], width: int, failed: bool, changes: bool = False) -> list[Line]:
    """Returns the rows of a command's output, wrapped to `width` columns. `failed`: whether the command has
    failed. `changes`: whether it prints changes of files, whose lines are coloured then."""
    return [row for line in lines for row in _rows(line, width, failed, changes)]


def _role_of_change(line: str) -> str:
    """Returns the role of a line of changes: by the sign that it begins with. A removed line can begin with
    `-- ` too, such as a comment of SQL; a line with the name of a file goes on like one."""
    if _NAME_OF_FILE.match(line):
        return "title"
    if line.startswith("@@ "):
        return "accent"
    return {"+": "add", "-": "delete"}.get(line[:1], "text")


def _rows(line: str, width: int, failed: bool, changes: bool) -> list[Line]:
    for pattern in _CODES if not changes else ():
        if match := pattern.fullmatch(line):
            return _code_rows(match[1], match[2], match[3], width)
    role = _role_of_change(line) if changes else "text"
    if is_head(line) and not changes:
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
