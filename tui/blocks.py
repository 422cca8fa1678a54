"""Lays out blocks, which are rows with a title, beside each other if there is room. Also puts rows into
frames.

    rows = lay_blocks([Block("Seals a week", chart), Block("People", people)], width)
"""

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
    """Rows with a title. `make`: returns the rows for a number of columns. If it returns none, the block is
    left out. `number`: a text after the title that says how many things the block shows."""

    title: str
    make: Callable[[int], Sequence[Line]]
    number: str = ""


def lay_blocks(blocks: Sequence[Block], width: int, least: int = LEAST) -> list[Line]:
    """Returns the rows of all blocks, arranged in columns of equal width. There are as many columns as fit
    with at least `least` cells each. Each block goes into the column that is shortest at that point."""
    number = max(1, min(MOST, len(blocks), (width + GAP) // (least + GAP)))
    wide = (width - GAP * (number - 1)) // number
    stacks: list[list[Line]] = [[] for _ in range(number)]
    for block in blocks:
        rows = block.make(wide)
        if rows:
            stack = min(stacks, key=len)
            stack += [BLANK] if stack else []
            stack += [draw_rule(block.title, block.number, wide), *rows]
    stacks = [stack for stack in stacks if stack]
    height = max(map(len, stacks), default=0)
    return [
        _beside([stack[row] if row < len(stack) else () for stack in stacks], wide) for row in range(height)
    ]


def draw_card(head: Sequence[Part], rows: Sequence[Row | Line], width: int) -> list[Row | Line]:
    """Returns the rows inside a frame (a card) that is `width` columns wide. `head`: the parts in the upper
    line of the frame. The frame takes CARD columns, and the rows must fit into the remaining ones."""
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


def draw_rule(title: str, count: str, width: int) -> Line:
    """Returns a line with the title of a block and its number, filled up with a rule to `width` columns."""
    parts = fit([(title, "title"), (f" {count}" if count else "", "dim"), (" ", "text")], width)
    return (*parts, ("─" * (width - sum(cell_len(text) for text, _ in parts)), "line"))


def _beside(cells: Sequence[Line], wide: int) -> Line:
    """Returns the cells of all columns joined into one row. Each cell is padded or cut to `wide` columns."""
    parts: list[Part] = []
    last = max((place for place, cell in enumerate(cells) if cell), default=0)
    for place, cell in enumerate(cells[: last + 1]):
        fitting = fit(_strip_end(cell), wide)
        parts += fitting
        if place < last:
            room = wide - sum(cell_len(text) for text, _ in fitting)
            parts.append((" " * (room + GAP), "text"))
    return tuple(parts)


def _strip_end(cell: Line) -> Line:
    """Returns the cell without the blanks at its end. A row that was wrapped may end with one blank more than
    fits."""
    return (*cell[:-1], (cell[-1][0].rstrip(), cell[-1][1])) if cell else cell
