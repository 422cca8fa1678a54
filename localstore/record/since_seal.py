"""Reads from the record of a folder what its branch has that is in no seal yet, and what was not sent. The
record is read without the folder's lock, so that a program can look at it at any time."""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Mapping
from contextlib import closing
from pathlib import Path
from typing import Literal, NamedTuple

from localstore.record import differences

Change = Literal["changed", "new", "removed"]
LAST = "SELECT value FROM meta WHERE key='last'"
SEALED = "SELECT 1 FROM sealed WHERE path=?"
UNSENT = """
SELECT path FROM entries WHERE pending>0
UNION SELECT path FROM flights
UNION SELECT differs.path FROM differs LEFT JOIN rows USING(path) WHERE differs.digest IS NOT rows.digest
"""


class SinceSeal(NamedTuple):
    """The differences between a folder's last seal and its branch, as recorded. `seal`: the id of that seal,
    None if the folder has none. `edits`: the changed paths of the branch. `unsent`: the paths that were
    edited here and that the branch does not have in this version."""

    seal: str | None
    edits: Mapping[str, Change]
    unsent: Collection[str]


def read_since_seal(record: Path) -> SinceSeal | None:
    """Returns what the record in the folder `record` says. Returns None if it cannot be read."""
    try:
        path = (record / "state.db").absolute()
        with closing(sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True)) as sql:
            sql.execute("BEGIN")  # all of it is of one moment
            edits: dict[str, Change] = dict.fromkeys(differences.gone_from_branch(sql), "removed")
            for row in differences.new_on_branch(sql):
                edits[row[0]] = "changed" if sql.execute(SEALED, (row[0],)).fetchone() else "new"
            last = sql.execute(LAST).fetchone()
            return SinceSeal(last[0] if last else None, edits, differences.only_column(sql.execute(UNSENT)))
    except sqlite3.Error:
        return None
