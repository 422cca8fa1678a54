"""The byte files (not text) of the branch's live frontier: their sizes, and the sum of these."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Sequence

from localstore.record.rows import Row
from localstore.record.sql import select_in


class ByteFiles:
    """Rows of the table `rows` that are not text. The sum of their sizes is computed once and updated by
    `changing`, so that the cost of a save does not depend on the size of the tree."""

    def __init__(self, sql: sqlite3.Connection) -> None:
        self._sql = sql
        self._total: int | None = None

    def sizes(self) -> dict[str, int]:
        """Path → bytes of each byte file."""
        return dict(self._sql.execute("SELECT path, size FROM rows WHERE kind<>'text'").fetchall())

    def sizes_at(self, paths: Iterable[str]) -> dict[str, int]:
        """Path → bytes, for the given paths that are byte files."""
        return dict(select_in(self._sql, "SELECT path, size FROM rows WHERE kind<>'text' AND path", paths))

    def total(self) -> int:
        """The sum of the bytes of all byte files."""
        if self._total is None:
            cursor = self._sql.execute("SELECT coalesce(sum(size), 0) FROM rows WHERE kind<>'text'")
            self._total = int(cursor.fetchone()[0])
        return self._total

    def changing(self, rows: Sequence[Row], gone: Iterable[str]) -> None:
        """Update the sum, before `rows` are stored and the rows of the paths `gone` are deleted."""
        if self._total is None:
            return
        after = {row.path: 0 if row.kind == "text" else row.size for row in rows}
        before = self.sizes_at({*gone, *after})
        self._total += sum(after.values()) - sum(before.values())

    def forget_total(self) -> None:
        """Compute the sum again when it is next needed. Call it if rows may have been stored without a call
        of `changing`."""
        self._total = None
