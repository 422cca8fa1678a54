"""SQLite, asked for many rows at once."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import closing
from itertools import islice
from pathlib import Path
from typing import Any

AT_ONCE = 500  # values of one statement


def select_in(
    sql: sqlite3.Connection, select: str, values: Iterable[str | bytes]
) -> Iterator[tuple[Any, ...]]:
    """The rows of `select`, which ends with the name of a column, where that is one of `values`."""
    rest = iter(values)
    while lot := list(islice(rest, AT_ONCE)):
        yield from sql.execute(f"{select} IN ({','.join('?' * len(lot))})", lot)


def value_of(path: Path, key: str) -> str | None:
    """One text that the database at `path` keeps, read without owning it; None if there is none."""
    try:
        with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)) as sql:
            found = sql.execute("SELECT value FROM meta WHERE key=?", (key,)).fetchone()
    except sqlite3.Error:
        return None
    return found[0] if found and isinstance(found[0], str) else None
