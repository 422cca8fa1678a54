"""A table that changes while it is shown. On a terminal it is redrawn in place; elsewhere each changed row is
printed as a new line."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import msgspec

from svc.console.table import Column, Record, plain

if TYPE_CHECKING:
    from svc.console.output import Out


class LiveTable:
    """A table whose rows change while it is shown. The value of an item's member `key` identifies its row. On
    a terminal the rows are redrawn. In a pipe each changed row is printed again. With `--json`, `--jq` or
    `--template` nothing is printed."""

    def __init__(self, out: Out, columns: Sequence[Column], key: str = "name") -> None:
        self._out, self._columns, self._key = out, columns, key
        self._before: dict[str, tuple[str, ...]] = {}
        self._region: Region | None = None
        self._width = 0

    def show(self, items: Sequence[msgspec.Struct]) -> None:
        """Replace the shown rows."""
        if self._out.format.as_data:
            return
        records: list[Record] = [msgspec.to_builtins(item) for item in items]
        if self._out.draws and len(records) + 3 <= shutil.get_terminal_size().lines:
            self._paint(records)
            return
        values = {
            str(record[self._key]): tuple(plain(column.value(record)) for column in self._columns)
            for record in records
        }
        changed = [
            record for record in records if values[name := str(record[self._key])] != self._before.get(name)
        ]
        first, self._before = not self._before, values
        self._out.lines(changed, self._columns, header=first)

    def note(self, sentence: str) -> None:
        """Print a note; the table is redrawn below it."""
        self._out.note(sentence)
        self._region = None

    def _paint(self, records: Sequence[Record]) -> None:
        width = self._out.width
        if self._region is None or width != self._width:
            self._region, self._width = Region(self._out.draw), width
        self._region.paint(self._out.table(records, self._columns) if records else [])


class Region:
    """Lines at the bottom of a terminal, above the cursor, that can be replaced."""

    def __init__(self, write: Callable[[str], None]) -> None:
        self._write = write
        self._lines: list[str] = []

    def paint(self, lines: Sequence[str]) -> None:
        """Replace the lines on the terminal by `lines`. Only changed lines are written."""
        old, high = self._lines, len(self._lines)
        pieces, row = [], high  # row: of the cursor, counted from the first line
        for at, line in enumerate(lines[:high]):
            if line != old[at]:
                pieces.append(f"{_vertical(at - row)}{line}\x1b[K\r")
                row = at
        if len(lines) < high:
            pieces.append(f"{_vertical(len(lines) - row)}\x1b[J")
        else:
            pieces.append(_vertical(high - row))
            pieces += [f"{line}\n" for line in lines[high:]]
        text = "".join(pieces)
        if text:
            self._write(text)
        self._lines = list(lines)


def _vertical(rows: int) -> str:
    """Return the escape sequence that moves the cursor down by `rows` lines; a negative number moves it
    up."""
    return "" if rows == 0 else f"\x1b[{abs(rows)}{'B' if rows > 0 else 'A'}"
