"""Opens SQLite files in SVC_HOME that several threads and processes use at once."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Literal


def open_shared(file: Path, wait: float, synchronous: Literal["FULL", "NORMAL"]) -> sqlite3.Connection:
    """Open `file` and return the connection. A new file is readable only by its user. `wait`: how many
    seconds a statement waits for another process. `synchronous`: with FULL every commit survives a power
    cut; with NORMAL the last commits may be lost."""
    file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    db = sqlite3.connect(file, check_same_thread=False, isolation_level=None, timeout=wait)
    file.chmod(0o600)
    db.execute("PRAGMA journal_mode = WAL")
    db.execute(f"PRAGMA synchronous = {synchronous}")
    return db


@contextmanager
def transaction(db: sqlite3.Connection) -> Iterator[None]:
    """A context with one write transaction. Other processes cannot write until it ends."""
    db.execute("BEGIN IMMEDIATE")
    try:
        yield
    except BaseException:
        db.execute("ROLLBACK")
        raise
    db.execute("COMMIT")
