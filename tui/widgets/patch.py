"""The rows of a comparison, for `tui.widgets.diff`. They are files, hunks, and lines with the numbers of both
sides, in one column or in two.

A row is made when it is painted. Stored are only its kind, its numbers, and its position in the patch. So a
comparison of 100,000 lines takes a few megabytes and opens at once."""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from itertools import accumulate
from typing import Literal, NamedTuple

from rich.cells import cell_len

from localstore.core.model.history import ChangedFile
from tui.changed import counts_of
from tui.text import CUT, Part, fit, line_at, safe, slide
from tui.tints import Kind, Tints
from tui.widgets.coloured_file import FileColours, Spans
from tui.widgets.hunks import SIGNED, SIGNS, Hunk, blocks, hunks_of, without_blanks
from tui.widgets.lines import Item, text_of
from tui.widgets.words import Ranges, changed_words

DIGITS = 2  # columns of a line number at least
RUN_MAX = 200  # deleted or added lines in a row among which the partner of a line is looked for
SHOWN_MAX = 16 * 1024  # characters of a line that are painted
KINDS = {**SIGNED, "F": "file", "H": "hunk", "B": "both"}


class Key(NamedTuple):
    """The key of a row. `kind`: file, hunk, add, delete, text or both. `old`, `new`: its line number on each
    side, 0 if the side does not have the line."""

    path: str
    kind: str
    old: int
    new: int


class Spot(NamedTuple):
    """A line of a file, on the old or the new side."""

    path: str
    side: Literal["old", "new"]
    line: int


class LineColours(NamedTuple):
    """The colours of lines. `tints`: returns the backgrounds of changed lines. `colours`: the colours of each
    file, by its path."""

    tints: Callable[[], Tints | None]
    colours: Mapping[str, FileColours]


class Patches:
    """The rows of `files`. `half`: the columns of each side, 0 if both sides are in one column. `blanks`:
    changes of only white space are shown too. `seen`: the paths of the files whose lines are folded away.
    `heads`: whether a row with its name comes before each file. `look`: the colours of lines. If it is None,
    changed lines have only the two colours of changes."""

    def __init__(
        self,
        files: Iterable[ChangedFile] = (),
        half: int = 0,
        *,
        blanks: bool = True,
        seen: Iterable[str] = (),
        heads: bool = True,
        look: LineColours | None = None,
    ) -> None:
        self._half, self._folded = half, frozenset(seen)
        self._look = look
        self._files: list[ChangedFile] = []
        self._kinds = bytearray()
        self._old, self._new, self._at, self._at_old = array("I"), array("I"), array("I"), array("I")
        self.marks: dict[str, list[int]] = {"file": [], "hunk": []}  # rows of these kinds
        self.shift = 0  # columns that texts side by side are scrolled to the right
        for file in files:
            self.marks["file"].append(len(self._kinds))
            self._files.append(file)
            if heads:
                self._put("F", (0,), (0,), (0,))
            if file.path not in self._folded:
                for hunk in hunks_of(file.patch or ""):
                    self._add(hunk if blanks else without_blanks(hunk))
        highest = max(max(self._old, default=0), max(self._new, default=0)) if look is not None else 0
        self.digits = max(DIGITS, len(str(highest)))  # columns of a line number

    def numbers(self, file: ChangedFile) -> int:
        """Returns how many columns the line numbers of a file take, if old and new lines are in one column.
        The blank after each number is included."""
        return (self.digits + 1) * (2 if two_sided(file) else 1)

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

    def _add(self, hunk: Hunk) -> None:
        if not hunk.signs.strip(" "):
            return
        self.marks["hunk"].append(len(self._kinds))
        self._put("H", hunk.old[:1], hunk.new[:1], (hunk.title,))
        if not self._half:
            self._put(hunk.signs, hunk.old, hunk.new, hunk.at)
            return
        for deleted, added, others in blocks(hunk.signs):
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
            head = self._head(file)
            return Item(key, head, fixed=len(head))
        if kind == "hunk":
            return self._hunk_item(key, file, self._text(file, self._at[index]))
        if kind == "both":
            return self._item_of_both(key, file, index)
        if self._look is None:
            numbers = f"{key.old or '':>5} {key.new or '':>5} "
            mark = kind if kind == "text" else f"{kind}_mark"
            text = safe(self._text(file, self._at[index] + 1))
            return Item(key, ((numbers, "gutter"), (SIGNS[kind], mark), (text, kind)), fixed=2)
        return self._line_item(key, file, index)

    # --- lines with their colours

    def _hunk_item(self, key: Key, file: ChangedFile, title: str) -> Item:
        """Returns the row with the heading of a hunk. It names the function or class around the hunk."""
        if self._look is None:
            return Item(key, ((f"{'':>12}{safe(title)}", "hunk"),), fixed=1)
        numbers, _, named = title.removeprefix("@@").partition("@@")
        colours = self._look.colours.get(file.path)
        named = named.strip() or (colours.functions.get(key.new, "") if colours is not None else "")
        gutter = " " * (self.digits if self._half else self.numbers(file) - 2)
        parts = ((f"{gutter}⋯ ", "line"), (safe(f"@@{numbers}@@"), "hunk"), (f"  {safe(named)}", "name"))
        return Item(key, parts, fixed=len(parts))

    def _line_item(self, key: Key, file: ChangedFile, index: int) -> Item:
        wide, text = self.digits, self._read_line(file, self._at[index] + 1)
        sides = (key.old, key.new) if two_sided(file) else (key.old or key.new,)
        numbers = "".join(f"{number or '':>{wide}} " for number in sides)
        kind = _kind_of(key.kind)
        if kind is None:
            pieces = self._pieces(file, key.new, text, None, ())
            return Item(key, ((numbers, "gutter"), (" ", "text"), *pieces), fixed=2)
        partner = self._partner(index)
        words: Ranges = ()
        if partner is not None:
            other = self._read_line(file, self._at[partner] + 1)
            words = changed_words(text, other)[0] if kind == "delete" else changed_words(other, text)[1]
        number = key.old if kind == "delete" else key.new
        marks = self._marks(kind, numbers)
        if self._is_whole(file):
            marks = (numbers, "gutter"), marks[1]
            return Item(key, (*marks, *self._pieces(file, number, text, None, (), old=key.old > 0)), fixed=2)
        pieces = self._pieces(file, number, text, kind, words)
        return Item(key, (*marks, *pieces), rest=self._ground(kind), fixed=2)

    def _is_whole(self, file: ChangedFile) -> bool:
        """Returns whether all lines of a file are added or removed. Then their signs alone have a background:
        a screen full of it says no more, and is harder to read."""
        return not two_sided(file) and self._tints() is not None

    def _read_line(self, file: ChangedFile, at: int) -> str:
        """Returns the text of a line of the file's patch. Of a long line, only as much as can be painted.
        `at`: the position in the patch at which the text begins."""
        text = self._text(file, at)
        return text if len(text) <= SHOWN_MAX else text[:SHOWN_MAX] + CUT

    def _marks(self, kind: Kind, numbers: str) -> tuple[Part, Part]:
        """Returns the number and the sign of a changed line, as parts. `numbers`: the number as text."""
        tints = self._tints()
        if tints is None:
            return (numbers, "gutter"), (SIGNS[kind], f"{kind}_mark")
        return (numbers, tints.mark(kind, kind)), (SIGNS[kind], tints.mark(kind, f"{kind}_mark"))

    def _tints(self) -> Tints | None:
        return self._look.tints() if self._look is not None else None

    def _ground(self, kind: Kind) -> str:
        """Returns the role that paints the area to the right of the text of a changed line."""
        tints = self._tints()
        return "text" if tints is None else tints.line(kind, "text")

    def _pieces(
        self,
        file: ChangedFile,
        number: int,
        text: str,
        kind: Kind | None,
        words: Ranges,
        old: bool | None = None,
    ) -> list[Part]:
        """Returns the text of a line as parts with roles. `words`: the ranges of changed words in the text.
        `old`: whether the number is on the old side; without it, `kind` says so."""
        old = kind == "delete" if old is None else old
        tints = self._tints()
        if tints is None:
            cut = _cut(((0, len(text), kind or "text"),), words)
            return [
                (safe(text[start:end]), f"under {role}_mark" if changed else role)
                for start, end, role, changed in cut
            ]
        colours = self._look.colours.get(file.path) if self._look is not None else None
        coloured = colours.spans(number, text, old=old) if colours is not None else None
        spans: Spans = coloured if coloured is not None else ((0, len(text), "text"),)
        if kind is None:
            return [(safe(text[start:end]), role) for start, end, role in spans]
        return [
            (safe(text[start:end]), tints.words(kind, role) if changed else tints.line(kind, role))
            for start, end, role, changed in _cut(spans, words)
        ]

    def _partner(self, index: int) -> int | None:
        """Returns the index of the line with which a changed line is compared. For a deleted line that is the
        added line that replaces it, and the other way round. Returns None if there is no such line."""
        kinds, own = self._kinds, self._kinds[index : index + 1]
        above = bytes(kinds[max(0, index - RUN_MAX) : index])
        before = len(above) - len(above.rstrip(own))  # lines of the same kind above it
        if own == b"-":
            below = bytes(kinds[index : index + RUN_MAX])
            begins = index + len(below) - len(below.lstrip(b"-"))
            added = bytes(kinds[begins : begins + before + 1])
            return begins + before if len(added) == before + 1 and not added.strip(b"+") else None
        begins = index - before
        run = bytes(kinds[max(0, begins - RUN_MAX) : begins])
        deleted = len(run) - len(run.rstrip(b"-"))
        return begins - deleted + before if before < deleted else None

    def text_of(self, index: int) -> str:
        """Returns the text of the row `index`. Searches look for the typed words in it."""
        file, kind = self._file(index), chr(self._kinds[index])
        if kind == "F":
            return file.path
        if kind != "B":
            return self._text(file, self._at[index])
        sides = ((self._old, self._at_old), (self._new, self._at))
        return "\n".join(self._text(file, at[index] + 1) for numbers, at in sides if numbers[index])

    def place_of(self, key: Hashable) -> int | None:
        """Returns the index of the row with this key. Returns None if no row has it."""
        if not isinstance(key, Key):
            return None
        if key.kind == "file":
            heads = (at for at in self.marks["file"] if at < len(self) and chr(self._kinds[at]) == "F")
            return next((at for at in heads if self._file(at).path == key.path), None)
        return next((place for place in self._places(key) if self[place].key == key), None)

    def of_spot(self, spot: Spot) -> int | None:
        """Returns the index of the row that shows this line. Returns None if no row does."""
        key = Key(spot.path, "", *((spot.line, 0) if spot.side == "old" else (0, spot.line)))
        return next((place for place in self._places(key) if chr(self._kinds[place]) not in "FH"), None)

    def _places(self, key: Key) -> Iterator[int]:
        """Yields the indices of the rows with the file and the line number of this key. If the key has
        numbers on both sides, the number on the new side is compared."""
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
        mark: tuple[Part, ...] = (("  ✓ seen", "good"),) if file.path in self._folded else ()
        name: Part = (f"{was}{safe(file.path)}  ", "title")
        return ((f"{file.status:<9}", "dim"), name, *counts_of(file), *mark)

    def _item_of_both(self, key: Key, file: ChangedFile, index: int) -> Item:
        """Returns the row with a line of the old side and the one beside it. Their backgrounds go on up to
        the line between the sides, and up to the right edge."""
        old, new = self._side(file, index, old=True), self._side(file, index)
        middle: tuple[Part, ...] = ((" ", old[-1][1]), ("│", "line"), (" ", new[-1][1]))
        parts = (*old, *middle, *new)
        return Item(key, parts, rest=new[-1][1], fixed=len(parts))

    def _side(self, file: ChangedFile, index: int, *, old: bool = False) -> list[Part]:
        """Returns the parts of a line on one side. The last part is the area to the right of the text."""
        numbers, at = (self._old, self._at_old) if old else (self._new, self._at)
        number = numbers[index]
        if not number:
            return [(" " * self._half, "text")]
        kind = _kind_of(SIGNED[(file.patch or "")[at[index]]])
        if self._at[index] == self._at_old[index]:
            kind = None
        text = self._read_line(file, at[index] + 1)
        wide = self.digits if self._look is not None else 5
        numbered = f"{number:>{wide}} "
        if self._look is None:
            role = kind or "text"
            mark = f"{kind}_mark" if kind else "text"
            pieces: list[Part] = [(numbered, "gutter"), (SIGNS[role], mark), (safe(text), role)]
        elif kind is None:
            numbered_new = self._new[index]  # colours are those of the new text, whose number differs
            pieces = [(numbered, "gutter"), (" ", "text"), *self._pieces(file, numbered_new, text, None, ())]
        else:
            words = self._words_beside(file, index, old=old)
            marks = self._marks(kind, numbered)
            if self._is_whole(file):
                kind = None
                pieces = [
                    (numbered, "gutter"),
                    marks[1],
                    *self._pieces(file, number, text, None, (), old=old),
                ]
            else:
                pieces = [*marks, *self._pieces(file, number, text, kind, words)]
        fill = "text" if kind is None else kind if self._look is None else self._ground(kind)
        parts = fit([*pieces[:2], *slide(pieces[2:], self.shift)], self._half)
        used = sum(cell_len(piece) for piece, _ in parts)
        return [*parts, (" " * (self._half - used), fill)]

    def _words_beside(self, file: ChangedFile, index: int, *, old: bool) -> Ranges:
        """Returns the ranges of changed words in a line that has a line beside it on the other side. They are
        found by comparing both lines. Returns () if there is no line beside it. `old`: whether the line is on
        the old side."""
        if not self._old[index] or not self._new[index]:
            return ()
        both = changed_words(*(self._read_line(file, at[index] + 1) for at in (self._at_old, self._at)))
        return both[0] if old else both[1]


def two_sided(file: ChangedFile) -> bool:
    """Returns whether the lines of a file have numbers on both sides. A file that was added or removed has
    only one side."""
    return file.status not in ("added", "removed")


def _kind_of(name: str) -> Kind | None:
    return "add" if name == "add" else "delete" if name == "delete" else None


def _cut(spans: Spans, words: Ranges) -> Iterator[tuple[int, int, str, bool]]:
    """Cuts the coloured pieces of a line where changed words begin and end. Yields (start, end, role, whether
    it is changed) for each piece."""
    for start, end, role in spans:
        at = start
        for first, last in words:
            if last <= at or first >= end:
                continue
            if at < first:
                yield at, first, role, False
            yield max(at, first), min(end, last), role, True
            at = min(end, last)
        if at < end:
            yield at, end, role, False


def divide_note(parts: Sequence[Part], half: int, side: Literal["old", "new"]) -> tuple[Part, ...]:
    """Returns the parts of a note as a row with an old and a new side, and a line between the sides. `side`:
    the side that the note is on. `half`: the columns of each side."""
    line: Part = (" │ ", "line")
    if side == "new":
        (blank, role), *rest = parts
        return (" " * half, role), line, (" " * (len(blank) - half - len(line[0])), role), *rest
    used = sum(cell_len(text) for text, _ in parts)
    return *parts, (" " * max(0, half - used), "text"), line


class NotedRows:
    """The rows of a comparison with notes. A note is shown below the line that it is about."""

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
        self.marks = {kind: [self._to_noted(row) for row in rows] for kind, rows in patches.marks.items()}

    @property
    def noted(self) -> list[int]:
        """The rows that are notes."""
        return [
            begins + row
            for begins, rows in zip(self._begins, self._notes, strict=True)
            for row in range(len(rows))
        ]

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

    def end_of_note(self, index: int) -> int:
        """Returns the index of the last row of the note that the row `index` belongs to. Returns `index` if
        the row is no note."""
        end, (note, _) = index, self._note_at(index)
        while note is not None and end + 1 < len(self):
            following, _ = self._note_at(end + 1)
            if following is None or not _of_one_note(note, following):
                break
            end += 1
        return end

    def _note_at(self, index: int) -> tuple[Item | None, int]:
        """Looks up the row `index`, in the list that also has the rows of notes. If the row is a note,
        returns (note, 0). Otherwise returns (None, the index of the row in the list without notes)."""
        at = bisect_right(self._begins, index) - 1
        if at >= 0 and index - self._begins[at] < len(self._notes[at]):
            return self._notes[at][index - self._begins[at]], 0
        return None, index - self._before[at + 1]

    def place_of(self, key: Hashable) -> int | None:
        if isinstance(key, Key):
            place = self._patches.place_of(key)
            return None if place is None else self._to_noted(place)
        for begins, notes in zip(self._begins, self._notes, strict=True):
            for row, item in enumerate(notes):
                if item.key == key:
                    return begins + row
        return None

    def _to_noted(self, place: int) -> int:
        """Returns the index of a row in the list that also has the rows of notes. `place`: its index in the
        list without notes."""
        return place + self._before[bisect_left(self._under, place)]


def _of_one_note(first: Item, second: Item) -> bool:
    """Returns whether two rows belong to the same note. Their keys then begin with the same id."""
    keys = first.key, second.key
    return all(isinstance(key, tuple) for key in keys) and keys[0][0] == keys[1][0]  # type: ignore[index]
