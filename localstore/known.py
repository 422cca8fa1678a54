"""A cache of data from servers, so that a screen can be drawn before the network answers.

There is one SQLite file in SVC_HOME for all servers. A key is a path such as `repos/ID/tree/SEAL`. A value is
a struct as JSON. Long values are compressed, because SQLite copies each value several times and keeps the
last copy until the next statement. A value whose key contains a digest is always valid. For other values, the
time at which they were read is stored."""

from __future__ import annotations

import sqlite3
import threading
import time
import zlib
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, Generic, NamedTuple, TypeVar

import msgspec

from localstore.shared_database import open_shared

T = TypeVar("T")

FILE = "known.db"  # in SVC_HOME
KEPT = 4_000  # values; the oldest are dropped
KEPT_BYTES = 256 * 1024 * 1024  # of all stored values together
VALUE_MAX = 32 * 1024 * 1024  # bytes of JSON of one value that is kept
COMPRESSED = 16 * 1024  # bytes of JSON from which it is compressed
_DROP_OLDEST = """
DELETE FROM known WHERE (space, key) IN (
    SELECT space, key FROM (
        SELECT space, key, row_number() OVER newest AS place, sum(length(value)) OVER newest AS bytes
        FROM known WINDOW newest AS (ORDER BY at DESC, space, key)
    ) WHERE place > ? OR bytes > ?
)
"""
_ZLIB = b"\x78"  # first byte of a compressed value; JSON never begins with it


class CachedValue(NamedTuple, Generic[T]):
    """A cached value, and the time at which it was read in seconds since 1970."""

    value: T
    at: float


class Store:
    """Cached values by space and key. A space is the account and server that the data belongs to, as
    ACCOUNT@ORIGIN. Safe to use from several threads and processes."""

    def __init__(self, file: Path, clock: Callable[[], float] = time.time) -> None:
        self._lock = threading.Lock()
        self._clock = clock
        self._db = open_shared(file, 2.0, "NORMAL")
        self._db.execute(
            "CREATE TABLE IF NOT EXISTS known "
            "(space TEXT, key TEXT, at REAL, value BLOB, PRIMARY KEY (space, key)) WITHOUT ROWID"
        )

    def get(self, space: str, key: str, shape: Any) -> CachedValue[Any] | None:
        """The value that is cached in the space under the key, decoded as the type `shape`. None if there is
        none, or if another version of svc wrote it in another shape."""
        with self._lock:
            cursor = self._db.execute("SELECT value, at FROM known WHERE space = ? AND key = ?", (space, key))
            row = cursor.fetchone()
        if row is None:
            return None
        try:
            return CachedValue(msgspec.json.decode(_json(row[0]), type=shape), row[1])
        except (msgspec.MsgspecError, zlib.error):
            return None

    def put(self, space: str, key: str, value: Any) -> None:
        data = msgspec.json.encode(value)
        if len(data) > VALUE_MAX:
            return
        if len(data) >= COMPRESSED:
            data = zlib.compress(data, 1)
        with self._lock:
            self._db.execute(
                "INSERT INTO known VALUES (?, ?, ?, ?) "
                "ON CONFLICT DO UPDATE SET at = excluded.at, value = excluded.value",
                (space, key, self._clock(), data),
            )

    def forget(self, space: str, prefix: str = "") -> None:
        """Drop all values of this space whose keys begin with `prefix`, because the account no longer has
        access to them."""
        with self._lock:
            self._db.execute(
                "DELETE FROM known WHERE space = ? AND substr(key, 1, ?) = ?", (space, len(prefix), prefix)
            )

    def forget_server(self, origin: str) -> None:
        """Drop all data of this server, of all accounts."""
        end = f"@{origin}"
        with self._lock:
            self._db.execute("DELETE FROM known WHERE substr(space, ?) = ?", (-len(end), end))

    def close(self) -> None:
        """Drop the oldest values beyond KEPT and KEPT_BYTES, and close the database. If the
        database cannot be written now, nothing is dropped; the next `close` does it."""
        with self._lock:
            with suppress(sqlite3.Error):
                self._db.execute(_DROP_OLDEST, (KEPT, KEPT_BYTES))
            self._db.close()


def _json(stored: bytes) -> bytes:
    """The JSON of a stored value, decompressed if necessary. Returns at most its first VALUE_MAX bytes."""
    return zlib.decompressobj().decompress(stored, VALUE_MAX) if stored[:1] == _ZLIB else stored
