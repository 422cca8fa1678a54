"""Splits a unified patch into hunks. The texts of their lines stay in the patch."""

from __future__ import annotations

import re
from array import array
from collections.abc import Iterator, Sequence
from itertools import accumulate, compress
from operator import mul
from typing import NamedTuple

from localstore.core.model.history import ChangedFile
from tui.text import line_at, starts, windows

_HUNK = re.compile(r"@@ -(\d+)(?:,\d+)? \+(\d+)(?:,\d+)? @@")
_BLOCK = re.compile(r"(-*)(\+*)( *)")  # deleted lines, added ones in their place, unchanged ones
SIGNS = {"add": "+", "delete": "-", "text": " "}
OF_LINES = frozenset("+- ")
SIGNED = {"+": "add", "-": "delete", " ": "text"}


class PatchLine(NamedTuple):
    """A line of a patch. `old`, `new`: its number on each side, 0 if the side does not have the line."""

    kind: str
    old: int
    new: int
    text: str


class Hunk(NamedTuple):
    """A hunk of a patch. `signs`: the first characters of its lines. `old`, `new`: the numbers of its lines
    on each side. `at`: the positions in `patch` at which its lines begin. `title`: the position at which the
    heading of the hunk begins."""

    patch: str
    title: int
    signs: str
    old: Sequence[int]
    new: Sequence[int]
    at: Sequence[int]

    def text(self, index: int) -> str:
        """Returns the text of a line of the hunk, without its sign."""
        return line_at(self.patch, self.at[index] + 1)


def texts(file: ChangedFile) -> Iterator[PatchLine]:
    """Yields the lines of a file's patch, without the headings of hunks."""
    for hunk in hunks_of(file.patch or ""):
        for index, (sign, old, new) in enumerate(zip(hunk.signs, hunk.old, hunk.new, strict=True)):
            yield PatchLine(SIGNED[sign], old, new, hunk.text(index))


def hunks_of(patch: str) -> Iterator[Hunk]:
    """Yields the hunks of a patch. Lines that are not from the file are left out, such as the note that a
    line break is missing at the end."""
    begins = starts(patch)
    firsts = "".join(line[:1] or "\n" for _, lines in windows(patch) for line in lines)
    titles = [line for line, first in enumerate(firsts) if first == "@" and _HUNK.match(patch, begins[line])]
    for title, end in zip(titles, (*titles[1:], len(begins)), strict=False):
        mask = bytes(map(OF_LINES.__contains__, firsts[title + 1 : end]))
        signs = "".join(compress(firsts[title + 1 : end], mask))
        numbers = _HUNK.match(patch, begins[title])
        old, new = map(int, numbers.groups()) if numbers is not None else (0, 0)
        yield Hunk(
            patch,
            begins[title],
            signs,
            _number_lines(signs, "+", old),
            _number_lines(signs, "-", new),
            array("I", compress(begins[title + 1 : end], mask)),
        )


def _number_lines(signs: str, without: str, first: int) -> array[int]:
    """Returns the numbers of a hunk's lines on one side, counted from `first`. Lines that this side does not
    have get 0. `without`: the sign of these lines."""
    there = signs.translate({ord(sign): sign != without for sign in SIGNS.values()}).encode()
    return array("I", map(mul, accumulate(there, initial=first), there))


def blocks(signs: str) -> Iterator[tuple[range, range, range]]:
    """Divides the lines of a hunk into blocks. Yields three ranges of indices for each block: deleted lines,
    the added lines that replace them, and the unchanged lines after them."""
    for match in _BLOCK.finditer(signs):
        if match[0]:
            yield range(*match.span(1)), range(*match.span(2)), range(*match.span(3))


def without_blanks(hunk: Hunk) -> Hunk:
    """Returns the hunk without changes of only white space. If a deleted and an added line differ only in
    white space, they become one unchanged line."""
    signs: list[str] = []
    olds, news = array("I"), array("I")  # the lines that the numbers come from; the new one is shown
    for deleted, added, others in blocks(hunk.signs):
        alike = len(deleted) == len(added) and all(
            hunk.text(a).split() == hunk.text(b).split() for a, b in zip(deleted, added, strict=True)
        )
        for numbers, chosen in ((olds, deleted), (news, added)):
            for lines in (chosen,) if alike else (deleted, added):
                numbers.extend(lines)
            numbers.extend(others)
        signs.append(" " * len(deleted) if alike else "-" * len(deleted) + "+" * len(added))
        signs.append(" " * len(others))
    return Hunk(
        hunk.patch,
        hunk.title,
        "".join(signs),
        array("I", (hunk.old[line] for line in olds)),
        array("I", (hunk.new[line] for line in news)),
        array("I", (hunk.at[line] for line in news)),
    )
