"""The recent texts of each file: the text that was saved here, and the later texts that came from the branch
and that svc wrote to the file. An editor may still show any of them.

Table `arrivals`: path → `Arrivals`, encoded. Each function runs in its caller's transaction."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator

import msgspec

SCHEMA = "CREATE TABLE arrivals(path TEXT PRIMARY KEY, encoded BLOB NOT NULL) WITHOUT ROWID;"


class TextVersion(msgspec.Struct, array_like=True):
    """A text that a file had. `digest`: its BLAKE3. `at`: when it was written, in milliseconds of Unix time.
    `read`: whether a program may have read it. `by`: handle of the author of the edit that it contains, ""
    if unknown."""

    digest: bytes
    at: int
    read: bool = True
    by: str = ""


class Arrivals(msgspec.Struct, array_like=True):
    """The recent texts of one file. `versions`: oldest first; the first was saved here, and svc wrote the
    others. `saved`: digest of the last save if it lacked lines of others that were kept nevertheless, else
    None. `plugin_texts`: texts that editor plugins showed when they sent their last edit, newest last; the
    file need not have had them."""

    versions: list[TextVersion]
    saved: bytes | None = None
    plugin_texts: list[TextVersion] = []


_ENCODE = msgspec.msgpack.Encoder().encode
_DECODE = msgspec.msgpack.Decoder(Arrivals).decode


class ArrivalTable:
    """Reads and writes the table `arrivals`: for each path, the texts that its file had recently, such as
    those that arrived from the branch."""

    def __init__(self, sql: sqlite3.Connection) -> None:
        self._sql = sql

    def get(self, path: str) -> Arrivals | None:
        for (encoded,) in self._sql.execute("SELECT encoded FROM arrivals WHERE path=?", (path,)):
            return _DECODE(encoded)
        return None

    def all(self) -> Iterator[tuple[str, Arrivals]]:
        for path, encoded in self._sql.execute("SELECT path, encoded FROM arrivals").fetchall():
            yield path, _DECODE(encoded)

    def put(self, path: str, arrivals: Arrivals) -> None:
        self._sql.execute("INSERT OR REPLACE INTO arrivals VALUES(?,?)", (path, _ENCODE(arrivals)))

    def drop(self, path: str) -> None:
        self._sql.execute("DELETE FROM arrivals WHERE path=?", (path,))
