"""Renders a table of Markdown as rows with aligned columns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from rich.cells import cell_len, set_cell_size

from tui.markdown.words import Piece, Row, row_of

GAP = 2  # columns between two columns
COLUMNS = 40  # that are shown; a wider table is cut
LEAST = 3  # cells of a column that is made narrower
CUT = "…"


class TableCell(NamedTuple):
    """A cell of a Markdown table. `align`: left, right or center."""

    pieces: list[Piece]
    align: str

    @property
    def width(self) -> int:
        return sum(cell_len(piece.text) for piece in self.pieces)


def table(rows: Sequence[Sequence[TableCell]], width: int) -> list[Row]:
    """Returns the rows of a table, at most `width` columns wide. The first row is the header. If the table is
    too wide, its widest columns are narrowed first, and their texts are cut with an ellipsis."""
    cells = [row[:COLUMNS] for row in rows]
    count = max((len(row) for row in cells), default=0)
    widths = [max(cell.width for row in cells for cell in row[at : at + 1]) for at in range(count)]
    over = sum(widths) + GAP * max(0, count - 1) - width
    while over > 0 and max(widths, default=0) > LEAST:
        widest = max(widths)
        below = max([other for other in widths if other < widest] or [LEAST])
        places = [place for place, other in enumerate(widths) if other == widest]
        for place in places:
            less = min(widest - max(below, LEAST), -(-over // len(places)))
            widths[place] -= max(1, less)
        over = sum(widths) + GAP * max(0, count - 1) - width
    drawn = [_row(row, widths) for row in cells]
    rule = Row((("─" * min(width, sum(widths) + GAP * max(0, count - 1)), "dim"),))
    return [*drawn[:1], rule, *drawn[1:]]


def _row(cells: Sequence[TableCell], widths: Sequence[int]) -> Row:
    line: list[Piece] = []
    for place, (cell, width) in enumerate(zip(cells, widths, strict=False)):
        if place:
            line.append(Piece(" " * GAP, "text"))
        pieces = _cut(cell.pieces, width)
        room = width - sum(cell_len(piece.text) for piece in pieces)
        before = room if cell.align == "right" else room // 2 if cell.align == "center" else 0
        line += [Piece(" " * before, "text"), *pieces, Piece(" " * (room - before), "text")]
    return row_of([piece for piece in line if piece.text])


def _cut(pieces: Sequence[Piece], width: int) -> list[Piece]:
    fitting: list[Piece] = []
    room = width
    for piece in pieces:
        size = cell_len(piece.text)
        if size > room:
            fitting.append(piece._replace(text=set_cell_size(piece.text, max(0, room - 1)) + CUT))
            break
        fitting.append(piece)
        room -= size
    return fitting
