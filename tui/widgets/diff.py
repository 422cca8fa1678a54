"""A comparison: files, hunks and lines with the numbers of both sides, in one column or two."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Literal, NamedTuple

from rich.cells import cell_len

from localstore.core.model.history import ChangedFile
from tui.text import Part, fit, safe
from tui.widgets.lines import Item, Lines, sequence

_HUNK = re.compile(r"@@ -(\d+)(?:,\d+)? \+(\d+)(?:,\d+)? @@(.*)")
SIGNS = {"add": "+", "delete": "-", "text": " "}


class Key(NamedTuple):
    """What a row is. `kind`: file, hunk, add, delete, text or both. A number is 0 where its side has no
    line."""

    path: str
    kind: str
    old: int
    new: int


class Spot(NamedTuple):
    """A line of a file, on the old or the new side."""

    path: str
    side: Literal["old", "new"]
    line: int


class Span(NamedTuple):
    """Lines of a file, on the old or the new side; `text`: what they hold."""

    path: str
    side: Literal["old", "new"]
    start: int
    end: int
    text: str


class _Line(NamedTuple):
    kind: str
    old: int
    new: int
    text: str


class Diff(Lines):
    """Shows changed files. `split`: old and new side by side. `blanks`: whether changes of white space alone
    are shown. `seen`: paths whose lines are folded away."""

    def __init__(self, id: str | None = None) -> None:
        super().__init__(marked=False, searches=True, empty="no difference", id=id)
        self.split, self.blanks = False, True
        self.seen: set[str] = set()
        self._files: tuple[ChangedFile, ...] = ()
        self._notes: Mapping[Spot, Sequence[Item]] = {}
        self._anchor: Key | None = None

    def show_files(self, files: Iterable[ChangedFile]) -> None:
        self._files = tuple(files)
        self.rebuild()

    def show_notes(self, notes: Mapping[Spot, Sequence[Item]]) -> None:
        """Rows that stand under lines of the files."""
        self._notes = notes
        self.rebuild()

    def rebuild(self) -> None:
        """Make the rows again; the cursor stays on its line."""
        half = (self.size.width - 3) // 2 if self.split else 0
        found = rows(self._files, half, blanks=self.blanks, seen=self.seen)
        self.show(sequence(noted(found, self._notes) if self._notes else found))

    def on_resize(self) -> None:
        if self.split:
            self.rebuild()
        super().on_resize()

    def toggle_split(self) -> None:
        self.split = not self.split
        self.rebuild()

    def toggle_blanks(self) -> None:
        self.blanks = not self.blanks
        self.rebuild()

    def toggle_seen(self) -> None:
        """Fold or unfold the file under the cursor."""
        if isinstance(self.key, Key):
            path = self.key.path
            self.seen.symmetric_difference_update({path})
            self.rebuild()
            place = self._place_of(Key(path, "file", 0, 0))
            if place is not None:
                self.go(place)

    # --- selected lines

    def select(self) -> bool:
        """Begin to select lines at the cursor, or end it. Whether it has begun."""
        self._anchor = self.key if self._anchor is None and isinstance(self.key, Key) else None
        self.refresh()
        return self._anchor is not None

    @property
    def selects(self) -> bool:
        return self._anchor is not None

    def go(self, index: int, step: int = 1) -> None:
        super().go(index, step)
        if self._anchor is not None:
            self.refresh()

    def highlights(self, index: int) -> bool:
        first, last = self._selected()
        return first <= index <= last

    def _selected(self) -> tuple[int, int]:
        """First and last row between the line where the selection began and the cursor."""
        place = self._place_of(self._anchor)
        begun = self.cursor if place is None else place
        return min(begun, self.cursor), max(begun, self.cursor)

    def span(self) -> Span | str:
        """The selected lines, or the line under the cursor: those after the change where there are any, else
        those before it. A sentence where they are not lines of one place."""
        first, last = self._selected()
        keys = [self.rows[index].key for index in range(first, last + 1)]
        lines = [key for key in keys if isinstance(key, Key) and key.kind not in ("file", "hunk")]
        if not lines:
            return "go to a line first"
        if any(isinstance(key, Key) and key.kind in ("file", "hunk") for key in keys):
            return "select lines of one hunk"
        side: Literal["old", "new"] = "new" if any(key.new for key in lines) else "old"
        numbers = [number for key in lines if (number := key.new if side == "new" else key.old)]
        start, end, path = min(numbers), max(numbers), lines[0].path
        return Span(path, side, start, end, "\n".join(self._texts(path, side, start, end)))

    def _texts(self, path: str, side: str, start: int, end: int) -> list[str]:
        file = next(file for file in self._files if file.path == path)
        numbered = [
            (line.new if side == "new" else line.old, line.text)
            for _, lines in _hunks(file.patch or "")
            for line in lines
        ]
        return [text for number, text in numbered if start <= number <= end]

    def jump(self, kind: str, step: int) -> bool:
        """Go to the next file or hunk; False at the end."""
        index = self.cursor + step
        while 0 <= index < len(self.rows):
            key = self.rows[index].key
            if isinstance(key, Key) and key.kind == kind:
                self.go(index, step)
                return True
            index += step
        return False


def rows(
    files: Iterable[ChangedFile], half: int = 0, *, blanks: bool = True, seen: Iterable[str] = ()
) -> list[Item]:
    """The rows of all files. `half`: columns of each side, 0 for one column."""
    folded = frozenset(seen)
    found: list[Item] = []
    for file in files:
        was = f"{safe(file.old_path)} → " if file.old_path and file.old_path != file.path else ""
        counts: tuple[Part, ...] = (
            (("  binary", "dim"),)
            if file.binary
            else ((f"  +{file.additions}", "add_mark"), (f" −{file.deletions}", "delete_mark"))
        )
        mark: tuple[Part, ...] = (("  ✓ seen", "good"),) if file.path in folded else ()
        head = ((f"{file.status:<9}", "dim"), (was + safe(file.path), "title"), *counts, *mark)
        found.append(Item(Key(file.path, "file", 0, 0), head))
        if file.path in folded:
            continue
        for title, lines in _hunks(file.patch or ""):
            shown = lines if blanks else _without_blanks(lines)
            if not any(line.kind != "text" for line in shown):
                continue
            found.append(
                Item(
                    Key(file.path, "hunk", shown[0].old, shown[0].new), ((f"{'':>12}{safe(title)}", "hunk"),)
                )
            )
            found += _side_by_side(file.path, shown, half) if half else _one_column(file.path, shown)
    return found


def noted(found: Iterable[Item], notes: Mapping[Spot, Sequence[Item]]) -> list[Item]:
    """The rows, with notes under those that show their lines."""
    made: list[Item] = []
    for item in found:
        made.append(item)
        if isinstance(item.key, Key) and item.key.kind not in ("file", "hunk"):
            for spot in (Spot(item.key.path, "old", item.key.old), Spot(item.key.path, "new", item.key.new)):
                made += notes.get(spot, ())
    return made


def _hunks(patch: str) -> list[tuple[str, list[_Line]]]:
    """Title and lines of each hunk."""
    found: list[tuple[str, list[_Line]]] = []
    old = new = 0
    for line in patch.split("\n"):
        hunk = _HUNK.match(line)
        if hunk:
            old, new = int(hunk[1]), int(hunk[2])
            found.append((line, []))
        elif found and line[:1] in ("+", "-", " "):
            kind = {"+": "add", "-": "delete", " ": "text"}[line[0]]
            found[-1][1].append(_Line(kind, old * (kind != "add"), new * (kind != "delete"), line[1:]))
            old += kind != "add"
            new += kind != "delete"
    return found


def _without_blanks(lines: list[_Line]) -> list[_Line]:
    """The lines, with deleted and added ones that differ only in white space joined into an unchanged one."""
    found: list[_Line] = []
    for deleted, added, others in _blocks(lines):
        same = len(deleted) == len(added) and all(
            a.text.split() == b.text.split() for a, b in zip(deleted, added, strict=True)
        )
        if same:
            found += [_Line("text", a.old, b.new, b.text) for a, b in zip(deleted, added, strict=True)]
        else:
            found += [*deleted, *added]
        found += others
    return found


def _blocks(lines: list[_Line]) -> list[tuple[list[_Line], list[_Line], list[_Line]]]:
    """Deleted lines, the added ones in their place, and the unchanged ones after them."""
    found: list[tuple[list[_Line], list[_Line], list[_Line]]] = [([], [], [])]
    for line in lines:
        deleted, added, others = found[-1]
        if line.kind == "text":
            others.append(line)
        elif others or (line.kind == "delete" and added):
            found.append(([line], [], []) if line.kind == "delete" else ([], [line], []))
        else:
            (deleted if line.kind == "delete" else added).append(line)
    return found


def _one_column(path: str, lines: list[_Line]) -> list[Item]:
    found = []
    for line in lines:
        numbers = f"{line.old or '':>5} {line.new or '':>5} "
        mark = line.kind if line.kind == "text" else f"{line.kind}_mark"
        found.append(
            Item(
                Key(path, line.kind, line.old, line.new),
                ((numbers, "gutter"), (SIGNS[line.kind], mark), (safe(line.text), line.kind)),
            )
        )
    return found


def _side_by_side(path: str, lines: list[_Line], half: int) -> list[Item]:
    """Rows with the old line on the left and the new one on the right; `half`: the width of each side."""
    found = []
    for deleted, added, others in _blocks(lines):
        pairs: list[tuple[_Line | None, _Line | None]] = [
            (
                deleted[place] if place < len(deleted) else None,
                added[place] if place < len(added) else None,
            )
            for place in range(max(len(deleted), len(added)))
        ]
        for old, new in (*pairs, *((line, line) for line in others)):
            key = Key(path, "both", old.old if old else 0, new.new if new else 0)
            found.append(Item(key, (*_side(old, half, "old"), (" │ ", "line"), *_side(new, half, "new"))))
    return found


def _side(line: _Line | None, width: int, side: str) -> list[Part]:
    if line is None:
        return [(" " * width, "text")]
    number = line.old if side == "old" else line.new
    mark = line.kind if line.kind == "text" else f"{line.kind}_mark"
    parts = fit(((f"{number:>5} ", "gutter"), (SIGNS[line.kind], mark), (safe(line.text), line.kind)), width)
    used = sum(cell_len(text) for text, _ in parts)
    return [*parts, (" " * (width - used), line.kind)]
