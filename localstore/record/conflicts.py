"""Unresolved conflicts of a working copy. Each call runs in its caller's transaction.

The texts of a conflict are in the working copy's object store, which never deletes a text."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from typing import NamedTuple

# From each version of the table to the next.
SCHEMA = """
CREATE TABLE conflicts(path TEXT PRIMARY KEY, kept_as TEXT NOT NULL, base BLOB, theirs BLOB NOT NULL,
    mine BLOB NOT NULL, by TEXT, lines TEXT NOT NULL, kept_lines TEXT NOT NULL) WITHOUT ROWID;
"""
SEVERAL = """
ALTER TABLE conflicts RENAME TO one_each;
CREATE TABLE conflicts(path TEXT NOT NULL, kept_as TEXT PRIMARY KEY, base BLOB, theirs BLOB NOT NULL,
    mine BLOB NOT NULL, by TEXT, lines TEXT NOT NULL, kept_lines TEXT NOT NULL) WITHOUT ROWID;
INSERT INTO conflicts SELECT * FROM one_each;
DROP TABLE one_each;
"""
ANY_KIND = """
ALTER TABLE conflicts RENAME TO of_files;
CREATE TABLE conflicts(path TEXT NOT NULL, kept_as TEXT PRIMARY KEY, base BLOB, theirs BLOB, mine BLOB,
    by TEXT, lines TEXT NOT NULL, kept_lines TEXT NOT NULL) WITHOUT ROWID;
INSERT INTO conflicts SELECT * FROM of_files;
DROP TABLE of_files;
"""


class RecordedConflict(NamedTuple):
    """A conflict. The file at `path` has the branch's version (theirs), and the file `kept_as` has the local
    version (mine). A path may have several conflicts, each with its own copy.

    `base`, `theirs`, `mine`: BLAKE3 of the versions. `base` is None without a common text. `theirs` is None
    if the branch has no file there, and `mine` is None if this folder has a directory there. `by`: handle of
    the author of theirs, None if unknown. `lines` of theirs conflict with `kept_lines` of mine, written as
    `12-14, 20`; both are "" for versions that are compared as a whole.

    If a directory and a file have the same name, there is one record for the directory, and none for its
    files. If a merge leaves this folder's directory in place, the file of the other side becomes the conflict
    copy."""

    path: str
    kept_as: str
    base: bytes | None
    theirs: bytes | None
    mine: bytes | None
    by: str | None
    lines: str
    kept_lines: str


class Conflicts:
    """Reads and writes the table of unresolved conflicts."""

    def __init__(self, sql: sqlite3.Connection) -> None:
        self._sql = sql

    def put(self, conflict: RecordedConflict) -> None:
        """Record a conflict. An existing record with the same copy is replaced. The caller has stored the
        texts."""
        self._sql.execute("INSERT OR REPLACE INTO conflicts VALUES(?,?,?,?,?,?,?,?)", conflict)

    def list(self) -> list[RecordedConflict]:
        """All conflicts, sorted by path, then by the name of the copy."""
        rows = self._sql.execute("SELECT * FROM conflicts ORDER BY path, kept_as")
        return [RecordedConflict(*row) for row in rows]

    def of(self, path: str) -> Sequence[RecordedConflict]:
        """The conflicts of one path, in the order of their copies' names."""
        rows = self._sql.execute("SELECT * FROM conflicts WHERE path=? ORDER BY kept_as", (path,))
        return [RecordedConflict(*row) for row in rows]

    def get(self, kept_as: str) -> RecordedConflict | None:
        row = self._sql.execute("SELECT * FROM conflicts WHERE kept_as=?", (kept_as,)).fetchone()
        return RecordedConflict(*row) if row else None

    def remove(self, kept_as: str) -> None:
        self._sql.execute("DELETE FROM conflicts WHERE kept_as=?", (kept_as,))


def line_ranges(ranges: list[tuple[int, int]]) -> str:
    """Ranges of lines as text for users, such as `12-14, 20`. The given ranges are [start, end), counted from
    0; the text counts from 1. An empty range is shown as the line after it."""
    return ", ".join(
        f"{start + 1}" if end <= start + 1 else f"{start + 1}-{end}" for start, end in dict.fromkeys(ranges)
    )
