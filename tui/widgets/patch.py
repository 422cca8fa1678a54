"""The rows of a comparison: files, hunks and lines with the numbers of both sides, in one column or two.

A row is made when it is painted. Only its kind, its numbers and its place in the patch are stored, so that a
comparison of 100,000 lines takes a few megabytes and opens at once.
"""

from __future__ import annotations

import re
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from itertools import accumulate, compress
from operator import mul
from typing import Literal, NamedTuple

from rich.cells import cell_len

from localstore.core.model.history import ChangedFile
from tui.text import Part, fit, line_at, safe, starts, windows
from tui.widgets.lines import Item, text_of

_HUNK = re.compile(r"@@ -(\d+)(?:,\d+)? \+(\d+)(?:,\d+)? @@")
_BLOCK = re.compile(r"(-*)(\+*)( *)")  # deleted lines, added ones in their place, unchanged ones
SIGNS = {"add": "+", "delete": "-", "text": " "}
OF_LINES = frozenset("+- ")
KINDS = {"+": "add", "-": "delete", " ": "text", "F": "file", "H": "hunk", "B": "both"}


class Key(NamedTuple):
    """The key of a row. `kind`: file, hunk, add, delete, text or both. A line number is 0 on a side without
    the line."""

    path: str
    kind: str
    old: int
    new: int


class Spot(NamedTuple):
    """A line of a file, on the old or the new side."""

    path: str
    side: Literal["old", "new"]
    line: int


class Line(NamedTuple):
    """A line of a patch. A number is 0 where its side has no line."""

    kind: str
    old: int
    new: int
    text: str


class _Hunk(NamedTuple):
    """A hunk. `signs`: first character of each line. `old`, `new`: line numbers. `at`: positions in `patch`
    where the lines begin. `title`: the position where the hunk's heading begins."""

    patch: str
    title: int
    signs: str
    old: Sequence[int]
    new: Sequence[int]
    at: Sequence[int]

    def text(self, index: int) -> str:
        """A line without its sign."""
        return line_at(self.patch, self.at[index] + 1)


class Patches:
    """The rows of `files`. `half`: columns of each side, 0 for one column. `blanks`: whether changes of white
    space alone are shown. `seen`: paths whose lines are folded away."""

    def __init__(
        self,
        files: Iterable[ChangedFile] = (),
        half: int = 0,
        *,
        blanks: bool = True,
        seen: Iterable[str] = (),
    ) -> None:
        self._half, self._folded = half, frozenset(seen)
        self._files: list[ChangedFile] = []
        self._kinds = bytearray()
        self._old, self._new, self._at, self._at_old = array("I"), array("I"), array("I"), array("I")
        self.marks: dict[str, list[int]] = {"file": [], "hunk": []}  # rows of these kinds
        for file in files:
            self.marks["file"].append(len(self._kinds))
            self._files.append(file)
            self._put("F", (0,), (0,), (0,))
            if file.path not in self._folded:
                for hunk in _hunks(file.patch or ""):
                    self._add(hunk if blanks else _without_blanks(hunk))

    def _put(
        self,
        kinds: str,
        old: Iterable[int],
        new: Iterable[int],
        at: Iterable[int],
        at_old: Iterable[int] = (),
    ) -> None:
        self._kinds += kinds.encode()
        self._old.extend(old)
        self._new.extend(new)
        self._at.extend(at)
        if self._half:
            self._at_old.extend(at_old or at)

    def _add(self, hunk: _Hunk) -> None:
        if not hunk.signs.strip(" "):
            return
        self.marks["hunk"].append(len(self._kinds))
        self._put("H", hunk.old[:1], hunk.new[:1], (hunk.title,))
        if not self._half:
            self._put(hunk.signs, hunk.old, hunk.new, hunk.at)
            return
        for deleted, added, others in _blocks(hunk.signs):
            count = max(len(deleted), len(added))
            left = [*deleted, *[-1] * (count - len(deleted)), *others]
            right = [*added, *[-1] * (count - len(added)), *others]
            self._put(
                "B" * len(left),
                (hunk.old[at] if at >= 0 else 0 for at in left),
                (hunk.new[at] if at >= 0 else 0 for at in right),
                [hunk.at[at] if at >= 0 else 0 for at in right],
                [hunk.at[at] if at >= 0 else 0 for at in left],
            )

    def __len__(self) -> int:
        return len(self._kinds)

    def __iter__(self) -> Iterator[Item]:
        return map(self.__getitem__, range(len(self)))

    def __getitem__(self, index: int, /) -> Item:
        kind = KINDS[chr(self._kinds[index])]
        file = self._file(index)
        key = Key(file.path, kind, self._old[index], self._new[index])
        if kind == "file":
            return Item(key, self._head(file))
        if kind == "hunk":
            return Item(key, ((f"{'':>12}{safe(self._text(file, self._at[index]))}", "hunk"),))
        if kind == "both":
            return Item(key, (*self._side(file, index, old=True), (" │ ", "line"), *self._side(file, index)))
        numbers = f"{key.old or '':>5} {key.new or '':>5} "
        mark = kind if kind == "text" else f"{kind}_mark"
        text = safe(self._text(file, self._at[index] + 1))
        return Item(key, ((numbers, "gutter"), (SIGNS[kind], mark), (text, kind)))

    def text_of(self, index: int) -> str:
        """The text that searches look in."""
        file, kind = self._file(index), chr(self._kinds[index])
        if kind == "F":
            return file.path
        if kind != "B":
            return self._text(file, self._at[index])
        sides = ((self._old, self._at_old), (self._new, self._at))
        return "\n".join(self._text(file, at[index] + 1) for numbers, at in sides if numbers[index])

    def place_of(self, key: Hashable) -> int | None:
        """The row with this key."""
        if not isinstance(key, Key):
            return None
        return next((place for place in self._places(key) if self[place].key == key), None)

    def of_spot(self, spot: Spot) -> int | None:
        """The index of the row that shows this line."""
        key = Key(spot.path, "", *((spot.line, 0) if spot.side == "old" else (0, spot.line)))
        return next((place for place in self._places(key) if chr(self._kinds[place]) not in "FH"), None)

    def _places(self, key: Key) -> Iterator[int]:
        """Yields the indices of rows of the key's file with the same line number, on the new side if the key
        has one there."""
        which = next((at for at, file in enumerate(self._files) if file.path == key.path), None)
        if which is None:
            return
        starts = self.marks["file"]
        first, end = starts[which], starts[which + 1] if which + 1 < len(starts) else len(self)
        numbers, number = (self._new, key.new) if key.new else (self._old, key.old)
        while first < end:
            try:
                first = numbers.index(number, first, end)
            except ValueError:
                return
            yield first
            first += 1

    def _file(self, index: int) -> ChangedFile:
        return self._files[bisect_right(self.marks["file"], index) - 1]

    def _text(self, file: ChangedFile, at: int) -> str:
        return line_at(file.patch or "", at)

    def _head(self, file: ChangedFile) -> tuple[Part, ...]:
        was = f"{safe(file.old_path)} → " if file.old_path and file.old_path != file.path else ""
        counts: tuple[Part, ...] = (
            (("  binary", "dim"),)
            if file.binary
            else ((f"  +{file.additions}", "add_mark"), (f" −{file.deletions}", "delete_mark"))
        )
        mark: tuple[Part, ...] = (("  ✓ seen", "good"),) if file.path in self._folded else ()
        return ((f"{file.status:<9}", "dim"), (was + safe(file.path), "title"), *counts, *mark)

    def _side(self, file: ChangedFile, index: int, *, old: bool = False) -> list[Part]:
        numbers, at = (self._old, self._at_old) if old else (self._new, self._at)
        if not numbers[index]:
            return [(" " * self._half, "text")]
        patch, begins = file.patch or "", at[index]
        kind = KINDS[patch[begins]] if self._at[index] != self._at_old[index] else "text"
        mark = kind if kind == "text" else f"{kind}_mark"
        text = safe(self._text(file, begins + 1))
        parts = fit(((f"{numbers[index]:>5} ", "gutter"), (SIGNS[kind], mark), (text, kind)), self._half)
        used = sum(cell_len(piece) for piece, _ in parts)
        return [*parts, (" " * (self._half - used), kind)]


class Noted:
    """Rows of a comparison, with notes below the lines that they are about."""

    def __init__(self, patches: Patches, notes: Mapping[Spot, Sequence[Item]]) -> None:
        under: dict[int, list[Item]] = {}
        for spot in sorted(notes, key=lambda spot: spot.side != "old"):  # those of the old side first
            if (place := patches.of_spot(spot)) is not None:
                under.setdefault(place, []).extend(notes[spot])
        self._patches = patches
        self._under = sorted(under)  # rows of the patches that have notes
        self._notes = [under[place] for place in self._under]
        self._before = [0, *accumulate(map(len, self._notes))]  # notes before those of each
        # The first note of each, among all rows.
        self._begins = [place + 1 + self._before[at] for at, place in enumerate(self._under)]
        self.marks = {kind: [self._moved(row) for row in rows] for kind, rows in patches.marks.items()}

    def __len__(self) -> int:
        return len(self._patches) + self._before[-1]

    def __iter__(self) -> Iterator[Item]:
        return map(self.__getitem__, range(len(self)))

    def __getitem__(self, index: int, /) -> Item:
        note, place = self._note_at(index)
        return note if note is not None else self._patches[place]

    def text_of(self, index: int) -> str:
        note, place = self._note_at(index)
        return text_of(note) if note is not None else self._patches.text_of(place)

    def _note_at(self, index: int) -> tuple[Item | None, int]:
        """(note, 0) if the row is a note, else (None, index of the row among those of the patches)."""
        at = bisect_right(self._begins, index) - 1
        if at >= 0 and index - self._begins[at] < len(self._notes[at]):
            return self._notes[at][index - self._begins[at]], 0
        return None, index - self._before[at + 1]

    def place_of(self, key: Hashable) -> int | None:
        if isinstance(key, Key):
            place = self._patches.place_of(key)
            return None if place is None else self._moved(place)
        for begins, notes in zip(self._begins, self._notes, strict=True):
            for row, item in enumerate(notes):
                if item.key == key:
                    return begins + row
        return None

    def _moved(self, place: int) -> int:
        """The index of a row of the patches among all rows."""
        return place + self._before[bisect_left(self._under, place)]


def texts(file: ChangedFile) -> Iterator[Line]:
    """The lines of a file's patch."""
    for hunk in _hunks(file.patch or ""):
        for index, (sign, old, new) in enumerate(zip(hunk.signs, hunk.old, hunk.new, strict=True)):
            yield Line(KINDS[sign], old, new, hunk.text(index))


def _hunks(patch: str) -> Iterator[_Hunk]:
    """The hunks of a patch. Other lines, such as a note about a missing line break, are left out."""
    begins = starts(patch)
    firsts = "".join(line[:1] or "\n" for _, lines in windows(patch) for line in lines)
    titles = [line for line, first in enumerate(firsts) if first == "@" and _HUNK.match(patch, begins[line])]
    for title, end in zip(titles, (*titles[1:], len(begins)), strict=False):
        mask = bytes(map(OF_LINES.__contains__, firsts[title + 1 : end]))
        signs = "".join(compress(firsts[title + 1 : end], mask))
        numbers = _HUNK.match(patch, begins[title])
        old, new = map(int, numbers.groups()) if numbers is not None else (0, 0)
        yield _Hunk(
            patch,
            begins[title],
            signs,
            _numbered(signs, "+", old),
            _numbered(signs, "-", new),
            array("I", compress(begins[title + 1 : end], mask)),
        )


def _numbered(signs: str, without: str, first: int) -> array[int]:
    """The number of each line on the side that lacks lines with the sign `without`; 0 for those."""
    there = signs.translate({ord(sign): sign != without for sign in SIGNS.values()}).encode()
    return array("I", map(mul, accumulate(there, initial=first), there))


def _blocks(signs: str) -> Iterator[tuple[range, range, range]]:
    """Yields (deleted, added, unchanged) ranges of lines: deleted lines, the added ones that replace them,
    and the unchanged ones after them."""
    for match in _BLOCK.finditer(signs):
        if match[0]:
            yield range(*match.span(1)), range(*match.span(2)), range(*match.span(3))


def _without_blanks(hunk: _Hunk) -> _Hunk:
    """The hunk with deleted and added lines that differ only in white space joined into unchanged ones."""
    signs: list[str] = []
    olds, news = array("I"), array("I")  # the lines that the numbers come from; the new one is shown
    for deleted, added, others in _blocks(hunk.signs):
        alike = len(deleted) == len(added) and all(
            hunk.text(a).split() == hunk.text(b).split() for a, b in zip(deleted, added, strict=True)
        )
        for numbers, chosen in ((olds, deleted), (news, added)):
            for lines in (chosen,) if alike else (deleted, added):
                numbers.extend(lines)
            numbers.extend(others)
        signs.append(" " * len(deleted) if alike else "-" * len(deleted) + "+" * len(added))
        signs.append(" " * len(others))
    return _Hunk(
        hunk.patch,
        hunk.title,
        "".join(signs),
        array("I", (hunk.old[line] for line in olds)),
        array("I", (hunk.new[line] for line in news)),
        array("I", (hunk.at[line] for line in news)),
    )
