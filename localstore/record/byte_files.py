"""The sizes of all files of the branch's live frontier that are not text, and their sum."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Sequence

from localstore.record.rows import FrontierRow
from localstore.record.sql import select_in


class ByteFiles:
    """The files of the recorded frontier that are not text. The sum of their sizes is computed once, and each
    later change is added by `changing`. So the cost of a save does not depend on the size of the tree."""

    def __init__(self, sql: sqlite3.Connection) -> None:
        self._sql = sql
        self._total: int | None = None

    def sizes(self) -> dict[str, int]:
        """The size in bytes of each file that is not text, by path."""
        return dict(self._sql.execute("SELECT path, size FROM rows WHERE kind<>'text'").fetchall())

    def sizes_at(self, paths: Iterable[str]) -> dict[str, int]:
        """The size in bytes of each file at these paths that is not text, by path. Other paths are
        left out."""
        return dict(select_in(self._sql, "SELECT path, size FROM rows WHERE kind<>'text' AND path", paths))

    def total(self) -> int:
        """The sum of the sizes in bytes of all files that are not text."""
        if self._total is None:
            cursor = self._sql.execute("SELECT coalesce(sum(size), 0) FROM rows WHERE kind<>'text'")
            self._total = int(cursor.fetchone()[0])
        return self._total

    def changing(self, rows: Sequence[FrontierRow], gone: Iterable[str]) -> None:
        """Update the sum of the sizes. Call this before `rows` are stored and before the rows of the paths
        `gone` are deleted."""
        if self._total is None:
            return
        after = {row.path: 0 if row.kind == "text" else row.size for row in rows}
        before = self.sizes_at({*gone, *after})
        self._total += sum(after.values()) - sum(before.values())

    def forget_total(self) -> None:
        """Forget the sum, so that it is computed again when it is needed. Call this if rows may have been
        stored without a call of `changing`."""
        self._total = None
