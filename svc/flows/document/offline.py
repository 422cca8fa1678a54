"""The documents of an account, which can also be read and edited while the server cannot be reached.

A document that was read is stored in `seen_documents.db`. An edit that cannot be sent to the server becomes
an action of the outbox (`svc.flows.outbox.document_edits`), based on the version that was seen. The next
command on the document sends this action first. `svc queue retry` and the agent send it, too."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, closing, contextmanager

from msgspec import structs

from localstore import outbox as outboxes
from localstore.core.document.edit import merge_edits
from localstore.core.errors import ClientError, NotFound, ServerUnreachable, SvcError
from localstore.core.model import document as documents
from localstore.core.model.document import STORED, Document, DocumentCreate, DocumentSummary
from localstore.disk_errors import translated_disk_errors
from localstore.errors import DiskError
from localstore.home import Home
from localstore.outbox import Outbox, QueuedAction, new_id
from localstore.seen_documents import FILE, SeenDocuments
from svc.api import Api
from svc.flows.document.place import DocumentView, OnServer, body_of
from svc.flows.outbox.actions import Queued, has_entries, replay, using_outbox
from svc.flows.outbox.document_edits import add_edit, latest, path_of, space_of, value_of
from svc.http.session import Session

_DAMAGED = "move it away to begin anew"


class OfAccount(OnServer):
    """The documents of the account that this device is signed in to. `note` is a function that prints a note
    to the user. All methods may raise DiskError."""

    def __init__(
        self, connect: Callable[[], Api], session: Session, home: Home, note: Callable[[str], None]
    ) -> None:
        super().__init__(connect)
        self._session, self._home, self._note = session, home, note
        self._who = (session.origin, session.user_id)
        self._space = space_of(session.user_id, session.origin)

    def create(self, body: DocumentCreate) -> Document:
        return self._remember(super().create(body))

    def archive(self, document_id: str, archived: bool) -> Document:
        return self._remember(super().archive(document_id, archived))

    def delete(self, document_id: str) -> None:
        super().delete(document_id)
        self._forget(document_id)

    def items(self, archived: bool | None, limit: int) -> Sequence[DocumentSummary]:
        """Return documents, newest first. If the server cannot be reached, returns the documents that this
        device has seen, and prints a note. `archived` is True for archived documents only, False for
        documents that are not archived, and None for all."""
        try:
            return list(super().items(archived, limit))
        except ServerUnreachable as error:
            with self._seen() as seen:
                documents = seen.items(self._space)
            if not documents:
                raise
            self._note(f"svc: {error.detail}")
            self._note("svc: these are the documents that this device has seen")
            return [document for document in documents if archived in (None, document.archived)][:limit]

    def look(self, document_id: str) -> DocumentView:
        """Return the document as the server has it, after sending waiting edits. If the server cannot be
        reached, returns the version that this device saw last, with the waiting edits, and prints a note."""
        try:
            if any(action.state == "waiting" for action in self._edits(document_id)):
                self._send(document_id)
            document = super().look(document_id).document
        except ServerUnreachable as error:
            view = self._find_known(document_id, error)
            what = ", with your edits that wait" if view.waits else ""
            self._note(f"svc: {error.detail}")
            self._note(f"svc: this is version {view.document.frontier}, which this device saw last{what}")
            return view
        except NotFound:
            self._forget(document_id)
            raise
        if any(action.state == "refused" for action in self._edits(document_id)):
            self._note("svc: an edit of yours was refused; see: svc queue list")
        return DocumentView(self._remember(document))

    def change(self, view: DocumentView, content: object, title: str | None) -> Document:
        body = body_of(view, content, title)
        if view.is_known:
            raise Queued(self._queue(view, content, title))
        key, path = new_id(time.time()), {"id": view.document.id}
        try:
            return self._remember(self._api.http.send_under(key, documents.PUT, body, {}, path))
        except ServerUnreachable as error:
            if not error.sent:
                raise Queued(self._queue(view, content, title)) from None
            value = value_of(view.document, content, title)
            with self._outbox() as outbox:
                place, handle = path_of(view.document.id), self._session.handle or ""
                raise Queued(outbox.add_tried(key, *self._who, handle, place, value)) from None

    def written(self, document_id: str) -> Document:
        """Return the document with the content that was written on this device and is not on the server. A
        refused edit is returned first, else a waiting one. Raises NotFound if there is neither."""
        actions = self._edits(document_id)
        if not actions:
            raise NotFound(f"no edit of the document {document_id} waits or was refused here")
        refused = [action for action in actions if action.state == "refused"]
        return self._with_edits(document_id, (refused or actions)[-1])

    def _queue(self, view: DocumentView, content: object, title: str | None) -> QueuedAction:
        """Queue an edit of the version of a document that was shown to the user. Edits that were queued or
        sent meanwhile are merged into it. Returns the queued action."""
        document = view.document

        def revise(last: QueuedAction | None) -> dict[str, object]:
            if last is not None:
                now = latest(last.value)["content"]
                return add_edit(last, merge_edits(document.content, now, content), title)
            seen = self._seen_last(document.id)
            if not view.waits or seen is None:
                return value_of(document, content, title)
            return value_of(seen, merge_edits(document.content, seen.content, content), title)

        handle, path = self._session.handle or "", path_of(document.id)
        with self._outbox() as outbox:
            try:
                return outbox.revise(*self._who, handle, path, revise)
            except OverflowError:
                raise ClientError(f"{outboxes.KEPT} actions wait already; see: svc queue list") from None

    def _send(self, document_id: str) -> None:
        """Send the waiting edits of a document, and print a note about each. Raises ServerUnreachable if they
        could not be sent."""

        def tell(_action: QueuedAction, error: SvcError | None) -> None:
            self._note("sent: what you changed here" if error is None else f"refused: {error.detail}")

        with self._outbox() as outbox:
            only = (*self._who, path_of(document_id))
            try:
                report = replay(outbox, self._home, lambda *_: self._api, tell, only)
            except ClientError as error:  # another process is sending all that time
                raise ServerUnreachable(error.detail, sent=False) from None
        if self._who in report.stopped:
            raise ServerUnreachable(report.stopped[self._who], sent=False)

    def _edits(self, document_id: str) -> Sequence[QueuedAction]:
        """Return the outbox's waiting and refused edits of a document, oldest first."""
        if not has_entries(self._home):
            return ()
        with self._outbox() as outbox:
            return outbox.at(*self._who, path_of(document_id))

    def _find_known(self, document_id: str, error: SvcError) -> DocumentView:
        """Return the version of the document that this device saw last, with the waiting edits. Raises
        `error` if this device has never seen the document."""
        seen = self._seen_last(document_id)
        waiting = [action for action in self._edits(document_id) if action.state == "waiting"]
        if waiting:
            return DocumentView(self._with_edits(document_id, waiting[-1]), is_known=True, waits=True)
        if seen is None:
            raise error
        return DocumentView(seen, is_known=True)

    def _with_edits(self, document_id: str, action: QueuedAction) -> Document:
        """Return a document with the edits applied that wait in an action of the outbox."""
        edits = latest(action.value)
        title, frontier, at = action.value["known_title"], action.value["base"], action.created_at
        seen = self._seen_last(document_id) or Document(
            id=document_id,
            title=title,
            mode=STORED,
            owner=action.account,
            archived=False,
            frontier=frontier,
            at_head=True,
            checkpoint_id=None,
            created_at="",
            updated_at=at,
            content=None,
        )
        return structs.replace(seen, content=edits["content"], title=edits.get("title", seen.title))

    def _remember(self, document: Document) -> Document:
        """Store the document, so that it can be read without the server. Returns the document. A disk error
        is only printed as a note."""
        with self._noted_disk_errors(), self._seen() as seen:
            seen.put(self._space, document)
        return document

    def _forget(self, document_id: str) -> None:
        with self._noted_disk_errors(), self._seen() as seen:
            seen.forget(self._space, document_id)

    @contextmanager
    def _noted_disk_errors(self) -> Iterator[None]:
        try:
            yield
        except DiskError as error:
            self._note(f"svc: {error.detail}")
            self._note("svc: documents are not kept for times without the server")

    def _seen_last(self, document_id: str) -> Document | None:
        with self._seen() as seen:
            return seen.get(self._space, document_id)

    @contextmanager
    def _seen(self) -> Iterator[SeenDocuments]:
        file = self._home.root / FILE
        with translated_disk_errors(file.parent, file, _DAMAGED), closing(SeenDocuments(file)) as seen:
            yield seen

    def _outbox(self) -> AbstractContextManager[Outbox]:
        return using_outbox(self._home)
