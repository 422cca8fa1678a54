"""The index of the texts in a working copy's pack files, which says where each text is. Each call runs in its
caller's transaction.

Table `objects`: digest (BLAKE3 of the text) → `TextPlace`."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from typing import NamedTuple

from localstore.record.sql import select_in


class TextPlace(NamedTuple):
    """Where a text is stored: in the frame (compressed block) at `offset` of pack file `pack`, from byte
    `start` of the frame's raw bytes on. `stored` and `raw`: compressed and raw size of the frame; `size`:
    bytes of the text."""

    pack: int
    offset: int
    stored: int
    codec: int
    raw: int
    start: int
    size: int


class ObjectIndex:
    """Reads and writes the table `objects`."""

    def __init__(self, sql: sqlite3.Connection) -> None:
        self._sql = sql

    def places(self, digests: Iterable[bytes]) -> dict[bytes, TextPlace]:
        """The places of the texts with these digests, by digest. Texts that are not stored are left out."""
        rows = select_in(
            self._sql,
            "SELECT digest, pack, offset, stored, codec, raw, start, size FROM objects WHERE digest",
            digests,
        )
        return {row[0]: TextPlace._make(row[1:]) for row in rows}

    def put(self, places: Iterable[tuple[bytes, TextPlace]]) -> None:
        """Add places of texts. A text that already has a place keeps it."""
        rows = ((digest, *place) for digest, place in places)
        self._sql.executemany("INSERT OR IGNORE INTO objects VALUES(?,?,?,?,?,?,?,?)", rows)
