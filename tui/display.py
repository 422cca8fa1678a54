"""Sends a terminal only the cells that changed.

Textual repaints whole widgets; over a slow line that is 5 to 20 KB for a key. `Screen` remembers what the
terminal shows, cell by cell, and answers the shortest text that turns it into what it must show:

    screen = Screen(80, 24)
    text = screen.update(painted)      # "" if nothing changed

An update that moved most rows by the same distance becomes a scroll; of the rest only the runs that differ
are sent. `LeanApp` is a Textual app that draws through it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from rich.cells import split_graphemes
from rich.color import ColorSystem
from rich.console import RenderableType
from rich.segment import Segment
from rich.style import Style
from textual._compositor import ChopsUpdate, CompositorUpdate, LayoutUpdate
from textual.app import App
from textual.screen import Screen as TextualScreen
from textual.strip import Strip

from tui.text import safe

GAP = 5  # equal cells between two runs that are sent again rather than jumped over
SCROLLED_ROWS = 4  # fewest rows that are worth a scroll
BLANKS = 4  # fewest blank cells at the end of a row that are worth erasing instead

_SYSTEMS = {
    "standard": ColorSystem.STANDARD,
    "256": ColorSystem.EIGHT_BIT,
    "truecolor": ColorSystem.TRUECOLOR,
    "windows": ColorSystem.WINDOWS,
}
_DEFAULTS = ("\x1b[39m", "\x1b[49m", "\x1b[39;49m")  # what a terminal does by itself
_SYNC_START, _SYNC_END = "\x1b[?2026h", "\x1b[?2026l"


class Look(NamedTuple):
    """How a style is switched on and off: escape sequences."""

    on: str
    off: str


class Cell(NamedTuple):
    """What one column shows: a character with what combines with it, "" for the right half of a wide one."""

    text: str
    look: Look


PLAIN = Look("", "")
BLANK = Cell(" ", PLAIN)
UNKNOWN = Cell(" ", Look("\x1b[0m", "\x1b[0m"))  # a blank that equals no cell that is painted
Row = list[Cell]


class Over(NamedTuple):
    """Pixels that the terminal draws over cells by itself. `draw` shows them where the cursor stands, `erase`
    takes them away where writing cells over them does not."""

    x: int
    y: int
    width: int
    height: int
    draw: str
    erase: str


class Looks:
    """The escape sequences of styles in one colour system."""

    def __init__(self, system: ColorSystem) -> None:
        self._system = system
        self._known: dict[Style | None, Look] = {None: PLAIN}

    def of(self, style: Style | None) -> Look:
        if style not in self._known:
            on, _, off = Strip.render_style(style or Style(), "\0", self._system).partition("\0")
            self._known[style] = PLAIN if on in _DEFAULTS else Look(on, off)
        return self._known[style]

    def cells(self, segments: Iterable[Segment]) -> Row:
        """The cells of one line. Characters that could steer the terminal take no cell: whatever a screen
        forgot to make safe ends here."""
        row: Row = []
        for text, style, control in segments:
            if control:
                continue
            look = self.of(style)
            if not text.isprintable():
                text = "".join(one for one in text if one.isprintable() or safe(one) == one)
            if text.isascii():
                row += [Cell(character, look) for character in text]
                continue
            for start, end, width in split_graphemes(text)[0]:
                if width:
                    row.append(Cell(text[start:end], look))
                    row += [Cell("", look)] * (width - 1)
                elif row and row[-1].text:
                    row[-1] = Cell(row[-1].text + text[start:end], row[-1].look)
        return row


class Screen:
    """What a terminal of `width` × `height` cells shows."""

    def __init__(self, width: int, height: int) -> None:
        self.width, self.height = width, height
        self._rows: list[Row] = [self._blank() for _ in range(height)]

    def clear(self) -> str:
        """The text that empties the terminal, whatever it shows."""
        self._rows = [self._blank() for _ in range(self.height)]
        return "\x1b[0m\x1b[2J"

    def rows(self) -> list[Row]:
        return [list(row) for row in self._rows]

    def forget(self, area: Over) -> None:
        """The terminal may show anything there."""
        for row in self._rows[area.y : area.y + area.height]:
            row[area.x : area.x + area.width] = [UNKNOWN] * len(row[area.x : area.x + area.width])

    def update(self, painted: Mapping[int, Iterable[tuple[int, Row]]], scrolls: bool = True) -> str:
        """Text that paints, for each line y, cells from column x on. "" if all of it is there already.
        `scrolls`: rows that moved may be scrolled."""
        wanted = {y: self._painted(y, runs) for y, runs in painted.items() if 0 <= y < self.height}
        changed = {y: row for y, row in wanted.items() if row != self._rows[y]}
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

    def _painted(self, y: int, runs: Iterable[tuple[int, Row]]) -> Row:
        row = list(self._rows[y])
        for x, cells in runs:
            fitting = cells[: max(0, self.width - x)]
            row[x : x + len(fitting)] = fitting
        for x, cell in enumerate(row):  # half of a wide character that something else covers
            if (cell.text == "" and (x == 0 or not _wide(row[x - 1]))) or (
                _wide(cell) and (x + 1 == self.width or row[x + 1].text != "")
            ):
                row[x] = Cell(" ", cell.look)
        return row

    def _scroll(self, changed: dict[int, Row], pen: _Pen) -> None:
        """Move the rows that are on the terminal already, at another place, and forget them in `changed`."""
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
        top, bottom = self._moved(changed, distance)
        if bottom - top < SCROLLED_ROWS:
            return
        first, last = min(top, top + distance), max(bottom, bottom + distance)
        pen.scroll(first, last, distance)
        empty = [self._blank() for _ in range(abs(distance))]
        kept = self._rows[first:last]
        kept = kept[distance:] + empty if distance > 0 else empty + kept[:distance]
        before = self._rows[first:last]
        self._rows[first:last] = kept
        for y in range(first, last):
            wanted = changed.get(y, before[y - first])
            changed.pop(y, None)
            if wanted != self._rows[y]:
                changed[y] = wanted

    def _moved(self, changed: Mapping[int, Row], distance: int) -> tuple[int, int]:
        """The longest block of lines [top, bottom) that shows what stood `distance` lines below."""
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
        shown = self._rows[y]
        erased = self.width - end >= BLANKS and row[end:] != shown[end:]
        for start, stop in _runs(shown, row, end if erased else self.width):
            pen.write(y, start, row[start:stop], self.width)
        if erased:
            pen.erase(y, end)


class _Pen:
    """Collects the text of one update, and knows where the cursor stands and what look is on."""

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
            x += 2 if _wide(cell) else 1
            certain = cell.text.isascii() or (len(cell.text) == 1 and not _wide(cell))
            self._at = (x, y) if certain and x < width else None

    def erase(self, y: int, x: int) -> None:
        """Blank the line from column x on."""
        self._go(x, y)
        self._switch(PLAIN)
        self._parts.append("\x1b[K")

    def scroll(self, first: int, last: int, distance: int) -> None:
        """Move the lines [first, last) up by `distance`, or down if it is negative."""
        self._switch(PLAIN)
        verb = "M" if distance > 0 else "L"
        self._parts.append(f"\x1b[{first + 1};{last}r\x1b[{first + 1};1H\x1b[{abs(distance)}{verb}\x1b[r")
        self._at = None

    def _go(self, x: int, y: int) -> None:
        if self._at == (x, y):
            return
        ways = [f"\x1b[{y + 1};{x + 1}H" if x else f"\x1b[{y + 1}H"]
        if self._at is not None:
            right, down = x - self._at[0], y - self._at[1]
            if (x, down) == (0, 1):
                ways.append("\r\n")
            if down in (0, 1):  # such as a column of times
                ways.append("\x1b[B" * down + (f"\x1b[{right}C" if right > 0 else "\b" * -right))
        self._parts.append(min(ways, key=len))
        self._at = (x, y)

    def _switch(self, look: Look) -> None:
        if look == self._look:
            return
        on, off = look.on, self._look.off
        if off == "\x1b[0m" and on.startswith("\x1b["):
            self._parts.append("\x1b[0;" + on[2:])
        else:
            self._parts.append(off + on)
        self._look = look


def _wide(cell: Cell) -> bool:
    return len(cell.text) > 0 and not cell.text.isascii() and split_graphemes(cell.text)[1] > 1


def _runs(shown: Row, wanted: Row, end: int) -> Iterator[tuple[int, int]]:
    """The ranges [start, stop) below `end` to write, those with small gaps between them as one."""
    start = stop = -1
    for x in range(end):
        if shown[x] == wanted[x]:
            continue
        if start >= 0 and x - stop > GAP:
            yield _whole(shown, wanted, start, stop)
            start = -1
        if start < 0:
            start = x
        stop = x + 1
    if start >= 0:
        yield _whole(shown, wanted, start, stop)


def _whole(shown: Row, wanted: Row, start: int, stop: int) -> tuple[int, int]:
    """The range without cutting a wide character of either row in two."""
    while start and (shown[start].text == "" or wanted[start].text == ""):
        start -= 1
    while stop < len(wanted) and (shown[stop].text == "" or wanted[stop].text == ""):
        stop += 1
    return start, stop


class LeanApp(App[None]):
    """A Textual app that sends changed cells only."""

    _shown: Screen | None = None
    _looks: Looks | None = None
    _over: Over | None = None

    def over(self) -> Over | None:
        """The pixels that are to be over the cells now."""
        return None

    def forget_display(self) -> None:
        """The terminal may show anything now: the next update paints all of it."""
        self._shown = None

    def on_resize(self) -> None:
        """Paint everything, also at the size that is known: a terminal that was small for a moment has lost
        cells."""
        self.forget_display()
        self.refresh(layout=True)

    def _display(self, screen: TextualScreen[Any], renderable: RenderableType | None) -> None:
        driver = self._driver
        if driver is None or self.is_headless or driver.is_inline:
            super()._display(screen, renderable)
            return
        if not isinstance(renderable, (LayoutUpdate, ChopsUpdate)):
            if renderable is not None:
                self.forget_display()
            super()._display(screen, renderable)
            return
        if self._batch_count or not self._running or self._closed:
            return
        text = self._changed(renderable)
        if text:
            x, y = self.screen.outer_size.clamp_offset(self.cursor_position)
            text += f"\x1b[{y + 1};{x + 1}H"
            if self._sync_available:
                text = f"{_SYNC_START}{text}{_SYNC_END}"
            driver.write(text)
            driver.flush()
        self.post_display_hook()

    def _changed(self, update: CompositorUpdate) -> str:
        width, height = self.size
        cleared = ""
        if self._looks is None:
            self._looks = Looks(_SYSTEMS.get(self.console.color_system or "", ColorSystem.TRUECOLOR))
        over = self.over()
        if self._over is not None and self._over != over:
            cleared = self._over.erase
            if self._shown is not None:
                self._shown.forget(self._over)
            self._over = None
        if self._shown is None or (self._shown.width, self._shown.height) != (width, height):
            self._shown = Screen(width, height)
            cleared += self._shown.clear()
            self._over = None
        text = cleared + self._shown.update(painted(update, self._looks), scrolls=over is None)
        if over is not None and self._over is None:
            self._over = over
            text += f"\x1b[{over.y + 1};{over.x + 1}H{over.draw}"
        return text


def painted(update: CompositorUpdate, looks: Looks) -> dict[int, list[tuple[int, Row]]]:
    """The cells that an update paints: for each line the runs with their first column."""
    found: dict[int, list[tuple[int, Row]]] = {}
    if isinstance(update, LayoutUpdate):
        for y, strips in enumerate(update.strips, update.region.y):
            found[y] = [(update.region.x, [cell for strip in strips for cell in looks.cells(strip)])]
    elif isinstance(update, ChopsUpdate):
        for y, left, right in update.spans:
            for end, (x, strip) in zip(update.chop_ends[y], update.chops[y].items(), strict=False):
                if strip is None or x >= right or end <= left:
                    continue
                cells = looks.cells(strip)
                first = max(0, left - x)
                found.setdefault(y, []).append((x + first, cells[first : min(end, right) - x]))
    return found
