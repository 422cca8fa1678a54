"""Computes the text that changes what a terminal shows, cell by cell.

`Screen` computes the shortest text that changes the terminal to new content:

    screen = Screen(80, 24)
    text = screen.update(painted)      # "" if nothing changed

If most of the changed rows have moved by the same distance, the terminal scrolls them. Of all other rows only
the differences are sent."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple

from rich.cells import split_graphemes

from tui.display.looks import BLANK, PLAIN, UNKNOWN, Cell, Look, Row, switch_look

GAP = 4  # equal cells between two runs that are sent again rather than jumped over
SCROLLED_ROWS = 4  # fewest rows that are worth a scroll
BLANKS = 4  # fewest blank cells at the end of a row that are worth erasing instead


class Overlay(NamedTuple):
    """A picture that the terminal draws in pixels over cells. `x`, `y`, `width` and `height` are in cells.
    `draw`: the escape sequence that draws it at the cursor. `erase`: the escape sequence that removes it. ""
    if it disappears when the cells are written."""

    x: int
    y: int
    width: int
    height: int
    draw: str
    erase: str


class Screen:
    """The content of a terminal of `width` × `height` cells."""

    def __init__(self, width: int, height: int) -> None:
        self.width, self.height = width, height
        self._rows: list[Row] = [self._blank() for _ in range(height)]

    def clear(self) -> str:
        """Returns the escape sequence that clears the terminal, whatever it shows."""
        self._rows = [self._blank() for _ in range(self.height)]
        return "\x1b[0m\x1b[2J"

    def rows(self) -> list[Row]:
        return [list(row) for row in self._rows]

    def forget(self, area: Overlay) -> None:
        """Forget what the terminal shows in this area, so that the next update paints it again."""
        for row in self._rows[area.y : area.y + area.height]:
            row[area.x : area.x + area.width] = [UNKNOWN] * len(row[area.x : area.x + area.width])

    def update(self, painted: Mapping[int, Iterable[tuple[int, Row]]], scrolls: bool = True) -> str:
        """Returns the text that makes the terminal show these cells. Returns "" if it shows them all already.
        `painted`: the new cells of each line, by the number of the line. They are pieces of the line, each as
        (first column, cells). `scrolls`: the terminal may scroll rows that have moved."""
        target = {y: self._paint_row(y, runs) for y, runs in painted.items() if 0 <= y < self.height}
        changed = {y: row for y, row in target.items() if row != self._rows[y]}
        if not changed:
            return ""
        pen = _Pen()
        if scrolls and len(changed) >= SCROLLED_ROWS:
            self._scroll(changed, pen)
        for y, row in sorted(changed.items()):
            self._write(y, row, pen)
            self._rows[y] = row
        return pen.text()

    def _blank(self) -> Row:
        return [BLANK] * self.width

    def _paint_row(self, y: int, runs: Iterable[tuple[int, Row]]) -> Row:
        row = list(self._rows[y])
        for x, cells in runs:
            fitting = cells[: max(0, self.width - x)]
            row[x : x + len(fitting)] = fitting
        if not any(text == "" or _wide(text) for text in {cell.text for cell in row}):
            return row
        for x, cell in enumerate(row):  # half of a wide character that something else covers
            if (cell.text == "" and (x == 0 or not _wide(row[x - 1].text))) or (
                _wide(cell.text) and (x + 1 == self.width or row[x + 1].text != "")
            ):
                row[x] = Cell(" ", cell.look)
        return row

    def _scroll(self, changed: dict[int, Row], pen: _Pen) -> None:
        """Let the terminal scroll changed rows that it already shows on other lines. Rows that are complete
        after the scrolling are removed from `changed`."""
        where: dict[tuple[Cell, ...], list[int]] = {}
        for y, row in enumerate(self._rows):
            if row != self._blank():
                where.setdefault(tuple(row), []).append(y)
        votes = Counter(
            old - y for y, row in changed.items() for old in where.get(tuple(row), [])[:8] if old != y
        )
        if not votes:
            return
        distance, count = max(votes.items(), key=lambda vote: (vote[1], -abs(vote[0])))
        if count < SCROLLED_ROWS or count * 2 < len(changed):
            return
        top, bottom = self._find_moved(changed, distance)
        if bottom - top < SCROLLED_ROWS:
            return
        first, last = min(top, top + distance), max(bottom, bottom + distance)
        pen.scroll(first, last, distance)
        empty = [self._blank() for _ in range(abs(distance))]
        moved = self._rows[first:last]
        moved = moved[distance:] + empty if distance > 0 else empty + moved[:distance]
        before = self._rows[first:last]
        self._rows[first:last] = moved
        for y in range(first, last):
            cells = changed.get(y, before[y - first])
            changed.pop(y, None)
            if cells != self._rows[y]:
                changed[y] = cells

    def _find_moved(self, changed: Mapping[int, Row], distance: int) -> tuple[int, int]:
        """Returns the longest block of changed lines whose new content the terminal already shows `distance`
        lines below. The block is (top, bottom) without the line `bottom`."""
        best, top = (0, 0), None
        for y in range(self.height + 1):
            row = changed.get(y) if y < self.height else None
            same = row is not None and 0 <= y + distance < self.height and row == self._rows[y + distance]
            if same and top is None:
                top = y
            elif not same and top is not None:
                best, top = max(best, (top, y), key=lambda block: block[1] - block[0]), None
        return best

    def _write(self, y: int, row: Row, pen: _Pen) -> None:
        end = self.width
        while end and row[end - 1] == BLANK:
            end -= 1
        before = self._rows[y]
        erased = self.width - end >= BLANKS and row[end:] != before[end:]
        for start, stop in _runs(before, row, end if erased else self.width):
            pen.write(y, start, row[start:stop], self.width)
        if erased:
            pen.erase(y, end)


class _Pen:
    """Collects the text of one update. Tracks where the cursor is, and which look (colours and style) is
    switched on."""

    def __init__(self) -> None:
        self._parts: list[str] = []
        self._look = PLAIN
        self._at: tuple[int, int] | None = None  # column, line; None: not certain

    def text(self) -> str:
        self._switch(PLAIN)
        return "".join(self._parts)

    def write(self, y: int, x: int, cells: Row, width: int) -> None:
        self._go(x, y)
        certain = True
        for cell in cells:
            if cell.text == "":
                continue
            if not certain:
                self._go(x, y)
            self._switch(cell.look)
            self._parts.append(cell.text)
            x += 2 if _wide(cell.text) else 1
            certain = cell.text.isascii() or (len(cell.text) == 1 and not _wide(cell.text))
            self._at = (x, y) if certain and x < width else None

    def erase(self, y: int, x: int) -> None:
        """Blank the line `y` from column `x` to its end."""
        self._go(x, y)
        self._switch(PLAIN)
        self._parts.append("\x1b[K")

    def scroll(self, first: int, last: int, distance: int) -> None:
        """Move lines up by `distance`, or down if it is negative. The lines are those from `first` up to, but
        without, `last`."""
        self._switch(PLAIN)
        verb = "M" if distance > 0 else "L"
        self._parts.append(f"\x1b[{first + 1};{last}r\x1b[{first + 1};1H\x1b[{abs(distance)}{verb}\x1b[r")
        self._at = None

    def _go(self, x: int, y: int) -> None:
        if self._at == (x, y):
            return
        ways = [at(x, y)]
        if self._at is not None and (down := y - self._at[1]) >= 0:
            right = x - self._at[0]
            below = min("\x1bD" * down, f"\x1b[{down}B", key=len)
            steps = f"\x1b[{right}C" if right > 1 else "\x1b[C" if right else ""
            ways += [below + (steps if right >= 0 else "\b" * -right), f"{below}\x1b[{x + 1}G"]
            if not x:
                ways.append("\r" + "\n" * down)
        self._parts.append(min(ways, key=len))
        self._at = (x, y)

    def _switch(self, look: Look) -> None:
        if look != self._look:
            self._parts.append(switch_look(self._look, look))
            self._look = look


def at(x: int, y: int) -> str:
    """Returns the escape sequence that moves the cursor to column `x` of line `y`. Both count from 0."""
    return f"\x1b[{y + 1};{x + 1}H" if x else f"\x1b[{y + 1}H" if y else "\x1b[H"


@lru_cache(4096)
def _wide(text: str) -> bool:
    return len(text) > 0 and not text.isascii() and split_graphemes(text)[1] > 1


def _runs(before: Row, after: Row, end: int) -> Iterator[tuple[int, int]]:
    """Yields the ranges of columns in which two rows differ, up to column `end`, as (start, stop) without
    `stop`. Ranges with only a small gap between them are joined."""
    start = stop = -1
    for x in range(end):
        if before[x] == after[x]:
            continue
        if start >= 0 and (x - stop > GAP or _has_own_looks(after[stop - 1 : x + 1])):
            yield _whole(before, after, start, stop)
            start = -1
        if start < 0:
            start = x
        stop = x + 1
    if start >= 0:
        yield _whole(before, after, start, stop)


def _has_own_looks(cells: Row) -> bool:
    """Returns whether the look (colours and style) changes more often within these cells than is needed to
    get from the first look to the last. If so, writing the cells takes extra escape sequences."""
    changes = sum(cell.look != following.look for cell, following in pairwise(cells))
    return changes > (cells[0].look != cells[-1].look)


def _whole(before: Row, after: Row, start: int, stop: int) -> tuple[int, int]:
    """Returns a range of columns (start, stop), widened so that no wide character of either row is cut in
    half."""
    while start and (before[start].text == "" or after[start].text == ""):
        start -= 1
    while stop < len(after) and (before[stop].text == "" or after[stop].text == ""):
        stop += 1
    return start, stop
