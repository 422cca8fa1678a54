"""Where a document is kept: on the server, or on this device alone. Both answer alike."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Protocol

from localstore.core.errors import NotFound
from localstore.core.model import document as documents
from localstore.core.model.document import (
    Document,
    DocumentCreate,
    DocumentPut,
    DocumentQuery,
    DocumentSummary,
    DocumentUpdate,
)
from localstore.disk_errors import translated_disk_errors
from localstore.documents import FILE, LocalDocuments, is_local
from localstore.home import Home
from svc.api import Api

DAMAGED = "put back a copy of it, or move it away to begin anew"


class Documents(Protocol):
    """The documents of one place. Methods raise NotFound for an id that is not there."""

    def items(self, archived: bool | None, limit: int) -> Iterable[DocumentSummary]:
        """Documents, newest first; `archived`: only those that are, or are not."""

    def create(self, body: DocumentCreate) -> Document: ...
    def get(self, document_id: str) -> Document: ...
    def put(self, document_id: str, body: DocumentPut) -> Document: ...
    def archive(self, document_id: str, archived: bool) -> Document: ...
    def delete(self, document_id: str) -> None: ...
    def history(self, document_id: str, limit: int) -> Iterable[DocumentUpdate]:
        """The changes, newest first."""


class OnServer:
    """The documents of the account that is signed in."""

    def __init__(self, api: Api) -> None:
        self._api = api

    def items(self, archived: bool | None, limit: int) -> Iterable[DocumentSummary]:
        return self._api.items(documents.LIST, DocumentQuery(archived=archived), limit=limit)

    def create(self, body: DocumentCreate) -> Document:
        return self._api.send(documents.CREATE, body)

    def get(self, document_id: str) -> Document:
        return self._api.send(documents.GET, id=document_id)

    def put(self, document_id: str, body: DocumentPut) -> Document:
        return self._api.send(documents.PUT, body, id=document_id)

    def archive(self, document_id: str, archived: bool) -> Document:
        return self._api.send(documents.ARCHIVE if archived else documents.UNARCHIVE, id=document_id)

    def delete(self, document_id: str) -> None:
        self._api.send(documents.DELETE, id=document_id)

    def history(self, document_id: str, limit: int) -> Iterable[DocumentUpdate]:
        return self._api.items(documents.HISTORY, limit=limit, id=document_id)


class OnDevice:
    """The documents of this device, which are never sent. Methods raise DiskError too."""

    def __init__(self, home: Home) -> None:
        self._file = home.root / FILE
        with self._disk():
            self._kept = LocalDocuments(self._file)

    def _disk(self) -> AbstractContextManager[None]:
        return translated_disk_errors(self._file.parent, self._file, DAMAGED)

    def items(self, archived: bool | None, limit: int) -> Iterable[DocumentSummary]:
        with self._disk():
            return self._kept.items(archived)[:limit]

    def create(self, body: DocumentCreate) -> Document:
        with self._disk():
            return self._kept.create(body)

    def get(self, document_id: str) -> Document:
        with self._disk():
            return self._kept.get(document_id)

    def put(self, document_id: str, body: DocumentPut) -> Document:
        with self._disk():
            return self._kept.put(document_id, body)

    def archive(self, document_id: str, archived: bool) -> Document:
        with self._disk():
            return self._kept.archive(document_id, archived)

    def delete(self, document_id: str) -> None:
        with self._disk():
            self._kept.delete(document_id)

    def history(self, document_id: str, limit: int) -> Iterable[DocumentUpdate]:
        with self._disk():
            return self._kept.history(document_id)[:limit]


def place_of(document_id: str, home: Home, api: Callable[[], Api]) -> Documents:
    """The place of the document with this id."""
    return OnDevice(home) if is_local(document_id) else OnServer(api())


@contextmanager
def explained_missing(document_id: str) -> Iterator[None]:
    """A context in which a missing document is named."""
    try:
        yield
    except NotFound:
        listing = "svc doc list --local" if is_local(document_id) else "svc doc list"
        raise NotFound(f"you have no document {document_id}; see: {listing}") from None
