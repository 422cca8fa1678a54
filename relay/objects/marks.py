"""A set of digests that may be larger than memory, in a temporary private database file."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable

from relay.base.threads import run_on_thread

_BATCH = 10_000


class Marks:
    """A set of digests, kept in a file. Its work runs on a thread, and only a few MiB are in memory."""

    def __init__(self) -> None:
        self._file = sqlite3.connect("", isolation_level=None, check_same_thread=False)
        self._file.execute("PRAGMA journal_mode=OFF")
        self._file.execute("PRAGMA cache_size=-16000")
        self._file.execute("CREATE TABLE mark (digest BLOB PRIMARY KEY) WITHOUT ROWID")

    async def add(self, digests: Iterable[bytes]) -> list[bytes]:
        """Add these digests. Returns the digests that were not in the set before."""
        return await run_on_thread(self._add, list(dict.fromkeys(digests)))

    async def among(self, digests: Iterable[bytes]) -> set[bytes]:
        """Those of `digests` that are in the set."""
        return await run_on_thread(self._among, list(digests))

    def count(self) -> int:
        return int(self._file.execute("SELECT count(*) FROM mark").fetchone()[0])

    def close(self) -> None:
        self._file.close()

    def _add(self, digests: list[bytes]) -> list[bytes]:
        marked = self._among(digests)
        fresh = [digest for digest in digests if digest not in marked]
        self._file.execute("BEGIN")
        self._file.executemany("INSERT INTO mark VALUES (?)", ((digest,) for digest in fresh))
        self._file.execute("COMMIT")
        return fresh

    def _among(self, digests: list[bytes]) -> set[bytes]:
        marked: set[bytes] = set()
        for start in range(0, len(digests), _BATCH):
            batch = digests[start : start + _BATCH]
            places = ",".join("?" * len(batch))
            rows = self._file.execute(f"SELECT digest FROM mark WHERE digest IN ({places})", batch)  # noqa: S608
            marked.update(row[0] for row in rows)
        return marked
