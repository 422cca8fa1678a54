"""A cache of documents on servers, as this device last saw them. With it they can be read and edited without
a network.

The cache is one SQLite file in SVC_HOME, `seen_documents.db`. It is limited in count and bytes, as a document
can always be read again from the server. Edits that wait to be sent are in the outbox."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import msgspec

from localstore.core.model.document import Document
from localstore.shared_database import open_shared, transaction

FILE = "seen_documents.db"  # in SVC_HOME
KEPT = 200  # documents; those that were seen longest ago are dropped
KEPT_BYTES = 16 * 1024 * 1024  # of JSON of all of them


class SeenDocuments:
    """The newest version of each document that this machine has read, by document id and space. A space is
    the account and server, as ACCOUNT@ORIGIN. Safe to use from several processes."""

    def __init__(self, file: Path, clock: Callable[[], float] = time.time) -> None:
        self._clock = clock
        self._db = open_shared(file, 5.0, "FULL")
        self._db.execute(
            "CREATE TABLE IF NOT EXISTS seen (space TEXT NOT NULL, id TEXT NOT NULL, at REAL NOT NULL, "
            "document BLOB NOT NULL, PRIMARY KEY (space, id)) WITHOUT ROWID"
        )

    def close(self) -> None:
        self._db.close()

    def get(self, space: str, document_id: str) -> Document | None:
        """The document in the version that was last seen; None if it is not in the cache."""
        row = self._db.execute(
            "SELECT document FROM seen WHERE space = ? AND id = ?", (space, document_id)
        ).fetchone()
        if row is None:
            return None
        try:
            return msgspec.json.decode(row[0], type=Document)
        except msgspec.MsgspecError:  # of another version of svc
            return None

    def items(self, space: str) -> list[Document]:
        """All cached documents of the space, newest first."""
        rows = self._db.execute("SELECT id FROM seen WHERE space = ?", (space,)).fetchall()
        documents = [document for (id,) in rows if (document := self.get(space, id)) is not None]
        return sorted(documents, key=lambda document: (document.created_at, document.id), reverse=True)

    def put(self, space: str, document: Document) -> None:
        """Store a document, unless a newer version of it is stored already. Then drop the oldest documents
        beyond the limits."""
        with transaction(self._db):
            newest = self.get(space, document.id)
            if newest is not None and int(newest.frontier) > int(document.frontier):
                return
            self._db.execute(
                "INSERT OR REPLACE INTO seen VALUES (?, ?, ?, ?)",
                (space, document.id, self._clock(), msgspec.json.encode(document)),
            )
            self._trim()

    def forget(self, space: str, document_id: str) -> None:
        """Drop a document that was deleted."""
        self._db.execute("DELETE FROM seen WHERE space = ? AND id = ?", (space, document_id))

    def forget_server(self, origin: str) -> None:
        """Drop the documents that any account of this device has seen on a server."""
        end = f"@{origin}"
        self._db.execute("DELETE FROM seen WHERE substr(space, ?) = ?", (-len(end), end))

    def _trim(self) -> None:
        rows = self._db.execute("SELECT space, id, length(document) FROM seen ORDER BY at DESC").fetchall()
        size = 0
        for place, (space, document_id, length) in enumerate(rows):
            size += length
            if place >= KEPT or size > KEPT_BYTES:
                self.forget(space, document_id)
