"""What the last look knew beside files: by folder what was left out there, and the moment up to which all
records are true. Each function is part of its caller's transaction.

Table `asides`: folder (its path with a slash behind, as the system's bytes) → `localstore.found.Aside`. It is
true while a last look is kept: one that no watcher answered drops that and leaves the table.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Mapping

import msgspec

from localstore.found import Aside
from localstore.watch.talk import Token

SCHEMA = "CREATE TABLE asides(folder BLOB PRIMARY KEY, encoded BLOB NOT NULL) WITHOUT ROWID;"


class Looked(msgspec.Struct, frozen=True, array_like=True):
    """The last look: the moment up to which all records of the disk are true, and when a look last went
    everywhere, in seconds of Unix time."""

    token: Token
    everywhere: int

    def encoded(self) -> bytes:
        """As the records keep it."""
        return _ENCODE(self)


def looked(kept: object) -> Looked | None:
    """What was kept of the last look; None for anything else."""
    try:
        return _LOOKED(kept) if isinstance(kept, bytes) else None
    except msgspec.MsgspecError:
        return None


def read(sql: sqlite3.Connection) -> dict[str, Aside]:
    """All of them, by folder."""
    found = sql.execute("SELECT folder, encoded FROM asides")
    return {os.fsdecode(folder): _DECODE(encoded) for folder, encoded in found}


def write(sql: sqlite3.Connection, changes: Mapping[str, Aside | None]) -> None:
    """Record those that changed; None: the folder has none any more."""
    gone = [(os.fsencode(folder),) for folder, aside in changes.items() if aside is None]
    put = [(os.fsencode(folder), _ENCODE(aside)) for folder, aside in changes.items() if aside is not None]
    sql.executemany("DELETE FROM asides WHERE folder=?", gone)
    sql.executemany("INSERT OR REPLACE INTO asides VALUES(?,?)", put)


_ENCODE = msgspec.msgpack.Encoder().encode
_LOOKED = msgspec.msgpack.Decoder(Looked).decode
_DECODE = msgspec.msgpack.Decoder(Aside).decode
