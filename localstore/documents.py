"""Documents that exist only on this device (mode 1) and are never sent. They are in one SQLite file in
SVC_HOME.

They are stored in the form in which a relay stores documents, so that the changes of two editors that are
open at once are merged."""

from __future__ import annotations

import sqlite3
import time
import uuid
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec

from localstore.core.document.content import check_content
from localstore.core.document.document import EMPTY
from localstore.core.document.edit import StoredUpdate, plan, work_out
from localstore.core.errors import NotFound
from localstore.core.model.document import (
    LOCAL,
    Document,
    DocumentArchived,
    DocumentCreate,
    DocumentPut,
    DocumentSummary,
    DocumentUpdate,
)
from localstore.core.seal import timestamp
from localstore.shared_database import open_shared, transaction

FILE = "documents.db"  # in SVC_HOME
PREFIX = "local-"  # of the id of every document here, and of none on a server
HERE = "this device"  # the owner
_TABLES = (
    "CREATE TABLE IF NOT EXISTS document (id TEXT PRIMARY KEY, title TEXT NOT NULL, content BLOB NOT NULL, "
    "head INTEGER NOT NULL, created_at TEXT NOT NULL, updated_at TEXT NOT NULL, archived INTEGER NOT NULL)",
    "CREATE TABLE IF NOT EXISTS document_update (document_id TEXT NOT NULL, number INTEGER NOT NULL, "
    "first INTEGER NOT NULL, base INTEGER NOT NULL, operations BLOB NOT NULL, created_at TEXT NOT NULL, "
    "PRIMARY KEY (document_id, number)) WITHOUT ROWID",
)
_COLUMNS = "id, title, head, created_at, updated_at, archived"


def is_local(document_id: str) -> bool:
    """Whether the id belongs to a document of a device (mode 1)."""
    return document_id.startswith(PREFIX)


class LocalDocuments:
    """The documents of this device. Several processes may use them at once. Methods raise NotFound for an
    unknown id."""

    def __init__(self, file: Path, clock: Callable[[], float] = time.time) -> None:
        self._clock = clock
        self._db = open_shared(file, 5.0, "FULL")
        for table in _TABLES:
            self._db.execute(table)

    def close(self) -> None:
        self._db.close()

    def items(self, archived: bool | None) -> list[DocumentSummary]:
        """All documents, newest first. `archived`: True for only the archived ones, False for only the
        others, None for all."""
        rows = self._db.execute(f"SELECT {_COLUMNS} FROM document ORDER BY created_at DESC, id")  # noqa: S608
        documents = [_summary(row) for row in rows]
        return [document for document in documents if archived in (None, document.archived)]

    def create(self, body: DocumentCreate) -> Document:
        edited = work_out(plan(check_content(body.content), (), 0, 1))
        document_id, now = f"{PREFIX}{uuid.uuid4().hex[:12]}", self._now()
        with transaction(self._db):
            self._db.execute(
                "INSERT INTO document VALUES (?, ?, ?, 1, ?, ?, 0)",
                (document_id, body.title, edited.content, now, now),
            )
            self._add(document_id, 1, 1, 0, edited.operations, now)
        return self.get(document_id)

    def get(self, document_id: str) -> Document:
        row = self._db.execute(
            f"SELECT {_COLUMNS}, content FROM document WHERE id = ?",  # noqa: S608
            (document_id,),
        ).fetchone()
        if row is None:
            raise NotFound
        summary = msgspec.structs.asdict(_summary(row[:-1]))
        return Document(**summary, content=msgspec.json.decode(row[-1]))

    def put(self, document_id: str, body: DocumentPut) -> Document:
        """Change a document by the rules of the relay's route `PUT`. Returns the document after the change.
        Raises DocumentArchived."""
        content = check_content(body.content)
        with transaction(self._db):
            old = self.get(document_id)
            if old.archived:
                raise DocumentArchived(old.title, old.id)
            head, title = int(old.frontier), body.title or old.title
            rows = self._db.execute(
                "SELECT number, operations, first, created_at FROM document_update "
                "WHERE document_id = ? ORDER BY number",
                (document_id,),
            ).fetchall()
            base = head if body.base is None else int(body.base)
            edit = plan(content, [StoredUpdate(row[0], row[1]) for row in rows], base, head + 1)
            edited = work_out(edit)
            if edited.operations == EMPTY and title == old.title:
                return old
            if edited.snapshot is not None:
                self._join(document_id, rows[: edit.joined], edited.snapshot)
            now = self._now()
            self._add(document_id, head + 1, head + 1, base, edited.operations, now)
            self._db.execute(
                "UPDATE document SET title = ?, content = ?, head = ?, updated_at = ? WHERE id = ?",
                (title, edited.content, head + 1, now, document_id),
            )
        return self.get(document_id)

    def archive(self, document_id: str, archived: bool) -> Document:
        """Archive a document, or with `archived` False make it writable again. Returns the document."""
        with transaction(self._db):
            if self.get(document_id).archived != archived:
                self._db.execute(
                    "UPDATE document SET archived = ?, updated_at = ? WHERE id = ?",
                    (archived, self._now(), document_id),
                )
        return self.get(document_id)

    def delete(self, document_id: str) -> None:
        with transaction(self._db):
            self.get(document_id)
            self._db.execute("DELETE FROM document_update WHERE document_id = ?", (document_id,))
            self._db.execute("DELETE FROM document WHERE id = ?", (document_id,))

    def history(self, document_id: str) -> list[DocumentUpdate]:
        """The changes of a document, newest first."""
        self.get(document_id)
        rows = self._db.execute(
            "SELECT number, first, base, length(operations), created_at FROM document_update "
            "WHERE document_id = ? ORDER BY number DESC",
            (document_id,),
        )
        return [
            DocumentUpdate(number=number, first=first, base=base, bytes=size, created_at=created_at)
            for number, first, base, size, created_at in rows
        ]

    def _join(self, document_id: str, rows: list[Any], snapshot: bytes) -> None:
        """Replace the oldest updates of a document (`rows`) with `snapshot`, which joins them."""
        (number, *_, created_at), first = rows[-1], rows[0][2]
        self._db.execute(
            "DELETE FROM document_update WHERE document_id = ? AND number <= ?", (document_id, number)
        )
        self._add(document_id, number, first, 0, snapshot, created_at)

    def _add(
        self, document_id: str, number: int, first: int, base: int, operations: bytes, created_at: str
    ) -> None:
        self._db.execute(
            "INSERT INTO document_update VALUES (?, ?, ?, ?, ?, ?)",
            (document_id, number, first, base, operations, created_at),
        )

    def _now(self) -> str:
        return timestamp(datetime.fromtimestamp(self._clock(), UTC))


def _summary(row: sqlite3.Row | tuple[Any, ...]) -> DocumentSummary:
    document_id, title, head, created_at, updated_at, archived = row
    return DocumentSummary(
        id=document_id,
        title=title,
        mode=LOCAL,
        owner=HERE,
        archived=bool(archived),
        frontier=str(head),
        at_head=True,
        checkpoint_id=None,
        created_at=created_at,
        updated_at=updated_at,
    )
