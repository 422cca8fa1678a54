"""Lays out blocks of rows with titles, beside each other where there is room, and puts rows into frames.

rows = laid([Block("Seals a week", chart), Block("People", people)], width)"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from rich.cells import cell_len

from tui.text import Part, fit

if TYPE_CHECKING:
    from tui.markdown.words import Row

Line = tuple[Part, ...]
BLANK: Line = (("", "text"),)
GAP = 3  # columns between two blocks
LEAST = 44  # columns that a block has at least where several are beside each other
MOST = 3  # blocks beside each other
CARD = 4  # columns of the frame of a card


class Block(NamedTuple):
    """Rows with a title. `make`: called with a number of columns, returns the rows; if it returns none, the
    block is left out. `number`: how many things it shows, as text after the title."""

    title: str
    make: Callable[[int], Sequence[Line]]
    number: str = ""


def laid(blocks: Sequence[Block], width: int, least: int = LEAST) -> list[Line]:
    """The rows of all blocks, arranged in columns of equal width: as many columns as fit if each has at least
    `least` cells. Each block is added to the column that is shortest so far."""
    number = max(1, min(MOST, len(blocks), (width + GAP) // (least + GAP)))
    wide = (width - GAP * (number - 1)) // number
    stacks: list[list[Line]] = [[] for _ in range(number)]
    for block in blocks:
        rows = block.make(wide)
        if rows:
            stack = min(stacks, key=len)
            stack += [BLANK] if stack else []
            stack += [ruled(block.title, block.number, wide), *rows]
    stacks = [stack for stack in stacks if stack]
    height = max(map(len, stacks), default=0)
    return [
        _beside([stack[row] if row < len(stack) else () for stack in stacks], wide) for row in range(height)
    ]


def carded(head: Sequence[Part], rows: Sequence[Row | Line], width: int) -> list[Row | Line]:
    """The rows in a frame (card) of `width` columns, with `head` in its upper line. The rows must fit into
    `width` less CARD."""
    from tui.markdown.words import Row

    top = fit([("╭─ ", "line"), *head, (" ", "text")], width - 2)
    room = width - sum(cell_len(text) for text, _ in top) - 1
    framed: list[Row | Line] = [(*top, ("─" * room + "╮", "line"))]
    for row in rows:
        parts, targets = (row.parts, row.targets) if isinstance(row, Row) else (row, ())
        inside = fit(parts, width - CARD)
        blank = " " * (width - CARD - sum(cell_len(text) for text, _ in inside))
        framed.append(Row((("│ ", "line"), *inside, (f"{blank} ", "text"), ("│", "line")), targets))
    return [*framed, (("╰" + "─" * (width - 2) + "╯", "line"),)]


def ruled(title: str, count: str, width: int) -> Line:
    """The title of a block with its number, and a line that fills the rest of the row. `width`: columns."""
    parts = fit([(title, "title"), (f" {count}" if count else "", "dim"), (" ", "text")], width)
    return (*parts, ("─" * (width - sum(cell_len(text) for text, _ in parts)), "line"))


def _beside(cells: Sequence[Line], wide: int) -> Line:
    """The cells of all columns as one row; each is filled up or cut to `wide` columns."""
    parts: list[Part] = []
    last = max((place for place, cell in enumerate(cells) if cell), default=0)
    for place, cell in enumerate(cells[: last + 1]):
        fitting = fit(_ended(cell), wide)
        parts += fitting
        if place < last:
            room = wide - sum(cell_len(text) for text, _ in fitting)
            parts.append((" " * (room + GAP), "text"))
    return tuple(parts)


def _ended(cell: Line) -> Line:
    """The cell without blanks at its end: a row that was folded may have one blank more than fits."""
    return (*cell[:-1], (cell[-1][0].rstrip(), cell[-1][1])) if cell else cell
