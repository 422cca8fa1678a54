"""The two places where documents can be: on the server, or only on this device. Their classes have the same
methods.

Documents of the server that this device has seen can also be read and edited without the server
(`svc.flows.document.offline`)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any, NamedTuple, Protocol

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
from svc.http.checked import require_valid

DAMAGED = "put back a copy of it, or move it away to begin anew"


class DocumentView(NamedTuple):
    """A document as it is shown to the user. `is_known` is True if it is the version that this device saw
    last, because the server did not answer. `waits` is True if it includes edits that wait for the server."""

    document: Document
    is_known: bool = False
    waits: bool = False


class Documents(Protocol):
    """The documents of one place, which is the server or this device. All methods raise NotFound for an
    unknown id."""

    def items(self, archived: bool | None, limit: int) -> Iterable[DocumentSummary]:
        """Return documents, newest first, at most `limit`. `archived` is True for archived documents only,
        False for documents that are not archived, and None for all."""

    def create(self, body: DocumentCreate) -> Document: ...
    def look(self, document_id: str) -> DocumentView:
        """Return the document with this id, for showing and editing."""

    def change(self, view: DocumentView, content: Any, title: str | None) -> Document:
        """Replace the content of a document that was shown. `title` is the new title, or None to keep the old
        one. Returns the new document, which includes changes that others made since it was shown. Raises
        Queued if the edit has to wait for the server."""

    def archive(self, document_id: str, archived: bool) -> Document: ...
    def delete(self, document_id: str) -> None: ...
    def history(self, document_id: str, limit: int) -> Iterable[DocumentUpdate]:
        """The changes of a document, newest first."""


class OnServer:
    """The documents of the signed-in account on the server. `connect` is a function that returns the server's
    API."""

    def __init__(self, connect: Callable[[], Api]) -> None:
        self._connect = connect

    @property
    def _api(self) -> Api:
        return self._connect()

    def items(self, archived: bool | None, limit: int) -> Iterable[DocumentSummary]:
        return self._api.items(documents.LIST, DocumentQuery(archived=archived), limit=limit)

    def create(self, body: DocumentCreate) -> Document:
        return self._api.send(documents.CREATE, body)

    def look(self, document_id: str) -> DocumentView:
        return DocumentView(self._api.send(documents.GET, id=document_id))

    def change(self, view: DocumentView, content: Any, title: str | None) -> Document:
        return self._api.send(documents.PUT, body_of(view, content, title), id=view.document.id)

    def archive(self, document_id: str, archived: bool) -> Document:
        return self._api.send(documents.ARCHIVE if archived else documents.UNARCHIVE, id=document_id)

    def delete(self, document_id: str) -> None:
        self._api.send(documents.DELETE, id=document_id)

    def history(self, document_id: str, limit: int) -> Iterable[DocumentUpdate]:
        return self._api.items(documents.HISTORY, limit=limit, id=document_id)


class OnDevice:
    """The documents that are only on this device. All methods may raise DiskError."""

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

    def look(self, document_id: str) -> DocumentView:
        with self._disk():
            return DocumentView(self._kept.get(document_id))

    def change(self, view: DocumentView, content: Any, title: str | None) -> Document:
        with self._disk():
            return self._kept.put(view.document.id, body_of(view, content, title))

    def archive(self, document_id: str, archived: bool) -> Document:
        with self._disk():
            return self._kept.archive(document_id, archived)

    def delete(self, document_id: str) -> None:
        with self._disk():
            self._kept.delete(document_id)

    def history(self, document_id: str, limit: int) -> Iterable[DocumentUpdate]:
        with self._disk():
            return self._kept.history(document_id)[:limit]


def body_of(view: DocumentView, content: Any, title: str | None) -> DocumentPut:
    """Return the body of the request that changes a document. `view` is the version that the user edited.
    Raises UsageError for an invalid title."""
    return require_valid(DocumentPut(content=content, title=title, base=view.document.frontier))


@contextmanager
def explained_missing(document_id: str) -> Iterator[None]:
    """A context that replaces every NotFound by one that names the missing document."""
    try:
        yield
    except NotFound:
        listing = "svc doc list --local" if is_local(document_id) else "svc doc list"
        raise NotFound(f"you have no document {document_id}; see: {listing}") from None
