"""Helpers for SQLite queries."""

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
    """The rows in which a column has one of the `values`. `select`: the query, which ends with the name of
    that column."""
    rest = iter(values)
    while lot := list(islice(rest, AT_ONCE)):
        # `yield from` would close the cursor of a dropped iterator, maybe after its connection
        for row in sql.execute(f"{select} IN ({','.join('?' * len(lot))})", lot):  # noqa: UP028
            yield row


def value_of(path: Path, key: str) -> str | None:
    """A text in the table `meta` of the database at `path`, None if it is missing. It is read without the
    working copy's lock."""
    try:
        with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)) as sql:
            row = sql.execute("SELECT value FROM meta WHERE key=?", (key,)).fetchone()
    except sqlite3.Error:
        return None
    return row[0] if row and isinstance(row[0], str) else None
