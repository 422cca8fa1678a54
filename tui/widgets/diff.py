"""Rows of a comparison: files, hunks and lines, with the numbers of both sides."""

from __future__ import annotations

import re
from collections.abc import Iterable

from localstore.core.model.history import ChangedFile
from tui.text import Part, safe
from tui.widgets.lines import Item

_HUNK = re.compile(r"@@ -(\d+)(?:,\d+)? \+(\d+)(?:,\d+)? @@(.*)")


def rows(files: Iterable[ChangedFile]) -> list[Item]:
    """The rows of all files. Keys are (path, kind, old number, new number)."""
    found: list[Item] = []
    for file in files:
        was = f"{safe(file.old_path)} → " if file.old_path and file.old_path != file.path else ""
        counts: tuple[Part, ...] = (
            (("  binary", "dim"),)
            if file.binary
            else ((f"  +{file.additions}", "add_mark"), (f" −{file.deletions}", "delete_mark"))
        )
        found.append(
            Item(
                (file.path, "file", 0, 0),
                ((f"{file.status:<9}", "dim"), (was + safe(file.path), "title"), *counts),
            )
        )
        found += _lines(file.path, file.patch or "")
    return found


def _lines(path: str, patch: str) -> list[Item]:
    found: list[Item] = []
    old = new = 0
    for line in patch.split("\n"):
        hunk = _HUNK.match(line)
        if hunk:
            old, new = int(hunk[1]), int(hunk[2])
            found.append(Item((path, "hunk", old, new), ((f"{'':>12}{safe(line)}", "hunk"),)))
        elif not old and not new:
            continue  # the names above the first hunk
        elif line.startswith("+"):
            found.append(_row(path, "add", 0, new, "+", line[1:]))
            new += 1
        elif line.startswith("-"):
            found.append(_row(path, "delete", old, 0, "-", line[1:]))
            old += 1
        elif line.startswith(" "):
            found.append(_row(path, "text", old, new, " ", line[1:]))
            old, new = old + 1, new + 1
    return found


def _row(path: str, kind: str, old: int, new: int, sign: str, text: str) -> Item:
    numbers = f"{old or '':>5} {new or '':>5} "
    mark = kind if kind == "text" else f"{kind}_mark"
    return Item((path, kind, old, new), ((numbers, "gutter"), (sign, mark), (safe(text), kind)))
