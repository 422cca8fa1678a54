"""SQLite, asked for many rows at once."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any

AT_ONCE = 500  # values of one statement


def among(sql: sqlite3.Connection, select: str, values: Iterable[str | bytes]) -> Iterator[tuple[Any, ...]]:
    """The rows of `select`, which ends with the name of a column, where that is one of `values`."""
    rest = iter(values)
    while lot := list(islice(rest, AT_ONCE)):
        yield from sql.execute(f"{select} IN ({','.join('?' * len(lot))})", lot)
