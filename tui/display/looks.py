"""Cells of a terminal and their looks (colours and styles).

looks = Looks(ColorSystem.STANDARD)
row = looks.cells(segments)"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import NamedTuple

from rich.cells import split_graphemes
from rich.color import ColorSystem
from rich.segment import Segment
from rich.style import Style
from textual.strip import Strip

from tui.display.hyperlinks import opened_by_terminal
from tui.text import safe

_DEFAULTS = ("\x1b[39m", "\x1b[49m", "\x1b[39;49m")  # what a terminal does by itself
_SGR = re.compile(r"\x1b\[[\d;]+m")
_CODE = re.compile(r"[34]8;(?:5;\d+|2;\d+;\d+;\d+)|\d+")
_OFF = {"colour": "39", "ground": "49", "1": "22", "3": "23", "4": "24", "5": "25", "7": "27", "9": "29"}
_SHARED = {"2", "6", "21"}  # faint, fast, double: what switches them off switches off others too


class Look(NamedTuple):
    """The colours and style of a cell, as the escape sequences that switch them on and off."""

    on: str
    off: str


class Cell(NamedTuple):
    """One column of the terminal: a character with its combining characters. The text is "" in the right half
    of a wide character."""

    text: str
    look: Look


PLAIN = Look("", "")
BLANK = Cell(" ", PLAIN)
CELLS_MAX = 2_000  # cells of one look that are kept
UNKNOWN = Cell(" ", Look("\x1b[0m", "\x1b[0m"))  # a blank that equals no cell that is painted
Row = list[Cell]


class _Cells(dict[str, Cell]):
    """All cells that have one look (colours and style), by their text. Each cell is made only once, so that
    equal cells are the same object and are compared quickly."""

    def __init__(self, look: Look) -> None:
        super().__init__()
        self.look = look

    def __missing__(self, text: str) -> Cell:
        if len(self) >= CELLS_MAX:
            self.clear()
        cell = self[text] = Cell(text, self.look)
        return cell


class Looks:
    """Turns styles of Rich into escape sequences for one colour system."""

    def __init__(self, system: ColorSystem) -> None:
        self._system = system
        self._looks: dict[Style | None, Look] = {None: PLAIN}
        self._cells: dict[Look, _Cells] = {}

    def of(self, style: Style | None) -> Look:
        if style not in self._looks:
            link = style.link if style is not None else None
            plain = style.update_link(None) if style is not None and link else style or Style()
            on, _, off = Strip.render_style(plain, "\0", self._system).partition("\0")
            look = PLAIN if on in _DEFAULTS else Look(on, off)
            if link and opened_by_terminal(link):
                look = Look(f"\x1b]8;;{link}\x1b\\{look.on}", f"{look.off}\x1b]8;;\x1b\\")
            self._looks[style] = look
        return self._looks[style]

    def cells(self, segments: Iterable[Segment]) -> Row:
        """Returns the cells of one line. Characters that could control the terminal get no cell. So they do
        no harm, even if a screen forgot to escape them."""
        row: Row = []
        for text, style, control in segments:
            if control:
                continue
            look = self.of(style)
            cells = self._cells.get(look)
            if cells is None:
                cells = self._cells[look] = _Cells(look)
            if not text.isprintable():
                text = "".join(letter for letter in text if letter.isprintable() or safe(letter) == letter)
            if text.isascii():
                row += map(cells.__getitem__, text)
                continue
            for start, end, width in _graphemes(text):
                if width:
                    row.append(cells[text[start:end]])
                    row += [cells[""]] * (width - 1)
                elif row and row[-1].text:
                    row[-1] = Cell(row[-1].text + text[start:end], row[-1].look)
        return row


@lru_cache(512)  # frames and signs are the same in most lines
def _graphemes(text: str) -> Sequence[tuple[int, int, int]]:
    """Splits a text into characters, each with its combining characters. Returns (start, end, width) for
    each."""
    return split_graphemes(text)[0]


@lru_cache(1024)
def switch_look(before: Look, after: Look) -> str:
    """Returns the shortest text that switches the terminal from one look (colours and style) to another."""
    old, new = _codes(before), _codes(after)
    if old is None or new is None:
        return before.off + after.on
    if not new:
        return "\x1b[m"
    if old == new:
        return ""
    gone = [_OFF.get(kind, "") for kind in old if kind not in new]
    fresh = [code for kind, code in new.items() if old.get(kind) != code]
    ways = [["0", *new.values()]]
    if all(gone) and _SHARED.isdisjoint([*old, *new]):
        ways.append([*gone, *fresh])
    return min((f"\x1b[{';'.join(codes)}m" for codes in ways if codes), key=len)


def _codes(look: Look) -> dict[str, str] | None:
    """Returns the escape codes that switch on a look (colours and style), by what each code sets: `colour`,
    `ground` for the background, or the code itself for anything else. Returns None if the look contains more
    than such codes."""
    if look.on and not (_SGR.fullmatch(look.on) and look.off == "\x1b[0m"):
        return None
    codes = {}
    for code in _CODE.findall(look.on):
        kind = "colour" if re.match(r"3\d|9\d", code) else "ground" if re.match(r"4\d|10\d", code) else code
        codes[kind] = code
    return {kind: code for kind, code in codes.items() if code not in ("39", "49")}
