"""The colours of a changed file: the roles of its words, and the function or class around each hunk."""

from __future__ import annotations

import re
from array import array
from bisect import bisect_left
from collections.abc import Sequence
from typing import NamedTuple

from localstore.core.model.history import ChangedFile
from tui.highlight import ColouredText, colour_text
from tui.text import line_at, starts
from tui.widgets.hunks import texts

TEXT_MAX = 256 * 1024  # characters of a patch or a file that are read for colours
_FUNCTION = re.compile(
    r"\s*(?:(?:export|default|public|private|protected|static|async|pub(?:\([^)]*\))?|abstract|final|unsafe)"
    r"\s+)*(?:def|class|func|fn|function|impl|interface|struct|enum|trait|module|namespace|type|sub)\s+[\w(<]"
)
_LINES_ABOVE = 2_000  # lines above a hunk among which its function is looked for

Spans = Sequence[tuple[int, int, str]]
"""(start, end, role) of each piece of a line."""


class Side(NamedTuple):
    """The lines of one side (old or new) of a changed file, with their roles. `numbers`: the numbers of these
    lines in the file, in order. None if `lines` has all lines of the file."""

    lines: ColouredText
    numbers: array[int] | None

    def spans(self, number: int, line: str) -> Spans | None:
        """Returns the roles in the line `number`. `line`: its text. Returns None if the coloured text has a
        different text in that line."""
        at = number - 1
        if self.numbers is not None:
            at = bisect_left(self.numbers, number)
            if at >= len(self.numbers) or self.numbers[at] != number:
                return None
        line = line.removesuffix("\r")  # lexers drop it
        return self.lines.spans(at) if at < len(self.lines) and self.lines.line(at) == line else None


class FileColours(NamedTuple):
    """The roles of a changed file. `old`, `new`: the roles of each side, None if they are unknown.
    `functions`: the line that begins the function or class around a hunk, by the number of the first new line
    of the hunk."""

    old: Side | None = None
    new: Side | None = None
    functions: dict[int, str] = {}  # noqa: RUF012  # nobody changes it

    def spans(self, number: int, line: str, *, old: bool) -> Spans | None:
        side = self.old if old else self.new
        return side.spans(number, line) if side is not None else None


def colours_of(file: ChangedFile, text: str | None) -> FileColours:
    """Returns the roles of a changed file. `text`: the whole new file, if it is known. This takes long, so
    call it on a thread."""
    patch = file.patch or ""
    if len(patch) > TEXT_MAX:
        return FileColours()
    whole = text if text is not None and len(text) <= TEXT_MAX else None
    old = _side(patch_side(file, old=True), file.old_path or file.path)
    if whole is None:
        return FileColours(old, _side(patch_side(file, old=False), file.path))
    lines = colour_text(whole, file.path)
    new = Side(lines, None) if lines is not None else None
    return FileColours(old, new, functions_around(file, whole))


def patch_side(file: ChangedFile, *, old: bool) -> list[tuple[int, str]]:
    """Returns (number, text) of those lines of a file's patch that are on the new side, or with `old` on the
    old side."""
    numbered = [((line.old if old else line.new), line.text) for line in texts(file)]
    return [(number, text) for number, text in numbered if number]


def _side(numbered: Sequence[tuple[int, str]], path: str) -> Side | None:
    lines = colour_text("\n".join(text for _, text in numbered), path)
    return Side(lines, array("I", (number for number, _ in numbered))) if lines is not None else None


def functions_around(file: ChangedFile, text: str) -> dict[int, str]:
    """Returns the line that begins the function or class around each hunk, by the number of the first new
    line of the hunk. `text`: the whole new file."""
    begins = starts(text)
    functions: dict[int, str] = {}
    before = 0
    for line in texts(file):
        number = line.new
        if number and number != before + 1 and number <= len(begins):
            above = range(number - 2, max(-1, number - 2 - _LINES_ABOVE), -1)
            lines = (line_at(text, begins[at]) for at in above)
            name = next((words.strip() for words in lines if _FUNCTION.match(words[:200])), "")
            if name:
                functions[number] = name[:200]
        before = number or before
    return functions
