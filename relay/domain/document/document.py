"""Rules of documents.

A document is a list of operations. Its title and content are stored too, so that reading needs no
computation. An edit is computed outside of any transaction, in a worker process. If the document has changed
meanwhile, the edit is computed again, else it is stored.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import msgspec

from localstore.core.document.content import to_canonical_json
from localstore.core.document.document import EMPTY
from localstore.core.document.edit import ComputedEdit, PlannedEdit, StoredUpdate, plan, work_out
from localstore.core.errors import Conflict, NotFound, QuotaExceeded
from localstore.core.model import limits
from localstore.core.model.base import Page, PageQuery
from localstore.core.model.document import (
    STORED,
    Document,
    DocumentArchived,
    DocumentCreate,
    DocumentModeRefused,
    DocumentMoved,
    DocumentPut,
    DocumentQuery,
    DocumentSummary,
    DocumentUpdate,
)
from relay.base.clock import now_ms, rfc3339
from relay.base.ids import new_id
from relay.caller import Caller
from relay.db import paging
from relay.db.engine.database import Row, Tx
from relay.domain.document.rows import document as rows
from relay.domain.document.rows.document import DocumentRow, UpdateRow, document_row, update_row

ATTEMPTS = 8  # to store an edit of a document that others change at the same time
WEIGHT = 8  # a byte of a document is about as much work as so many of a text: lists are many small values
MODES = {
    1: "documents of mode 1 never leave their device; run: svc doc create TITLE --local",
    3: "mode 3, private documents, is not offered by this version; use mode 2",
    4: "mode 4, access for a limited time, is not offered by this version; use mode 2",
    5: "mode 5, keys of a group, is not offered by this version; use mode 2",
}


class _ChangedMeanwhile(Exception):
    """Raised if another request changed the document while this request computed its edit."""


async def page(caller: Caller, query: DocumentQuery) -> Page[DocumentSummary]:
    """The caller's documents, newest first"""
    keyset = {None: rows.ALL, True: rows.ARCHIVED, False: rows.ACTIVE}[query.archived]
    async with caller.read() as tx:
        return await paging.read_page(
            tx, keyset, query, lambda row: _to_summary(document_row(row)), of_account=caller.me.account_id
        )


async def create(caller: Caller, body: DocumentCreate) -> Document:
    """Create a document"""
    if body.mode != STORED:
        raise DocumentModeRefused(MODES[body.mode], pointer="/mode")
    content, json = await asyncio.to_thread(to_canonical_json, body.content)
    edited = await _work_out(caller, plan(content, (), 0, 1), len(json))
    now, document_id = now_ms(), new_id()
    row = DocumentRow(document_id, caller.me.account_id, body.title, 1, _size_of(edited), now, now, None)
    async with caller.write() as tx:
        await caller.count_created(tx, "documents")
        await _require_room(tx, row.account_id, row.size, new=1)
        await tx.run(
            rows.INSERT,
            id=row.id,
            account_id=row.account_id,
            title=row.title,
            content=edited.content,
            head=row.head,
            size=row.size,
            created_at=now,
            updated_at=now,
            archived_at=None,
        )
        await _add_update(tx, row.id, UpdateRow(1, 1, 0, edited.operations, now))
        return _to_wire(row, edited.content)


async def get(caller: Caller, id: str) -> Document:
    """One document of the caller"""
    async with caller.read() as tx:
        return await _read(tx, caller, id)


async def put(caller: Caller, id: str, body: DocumentPut, if_match: str | None) -> Document:
    """Change a document to the given content

    The change is stored as operations, so that changes by others since the version `base` stay.
    """
    content, json = await asyncio.to_thread(to_canonical_json, body.content)
    for _ in range(ATTEMPTS):
        async with caller.read(snapshot=True) as tx:
            row = await _find(tx, caller, id)
            _require_writable(row)
            _require_match(row, if_match)
            caller.lease.reserve(row.size)
            updates = [update_row(values) for values in await tx.all(rows.UPDATES, of_document=id)]
        base = row.head if body.base is None else int(body.base)
        stored = [StoredUpdate(update.number, update.operations) for update in updates]
        edit = plan(content, stored, base, row.head + 1)
        edited = await _work_out(caller, edit, len(json))
        try:
            async with caller.write() as tx:
                current = await _find(tx, caller, id)
                _require_writable(current)
                _require_match(current, if_match)
                if current.head != row.head:
                    raise _ChangedMeanwhile
                if edited.operations == EMPTY and body.title in (None, current.title):
                    return await _read(tx, caller, id)
                return await _store(
                    tx, current, body.title, base, updates[: edit.joined], updates[edit.joined :], edited
                )
        except _ChangedMeanwhile:
            caller.lease.give_back(row.size)
    raise Conflict("others keep changing this document; send the edit again")


async def delete(caller: Caller, id: str) -> None:
    """Delete a document with its history"""
    async with caller.write() as tx:
        await _find(tx, caller, id)
        await tx.run(rows.DROP, of_document=id)
        await tx.run(rows.DELETE, of_document=id, of_account=caller.me.account_id)


async def archive(caller: Caller, id: str) -> Document:
    """Archive a document, which then takes no writes; a repeated request changes nothing"""
    return await _set_archived(caller, id, True)


async def unarchive(caller: Caller, id: str) -> Document:
    """Let an archived document take writes again; a repeated request changes nothing"""
    return await _set_archived(caller, id, False)


async def history(caller: Caller, id: str, query: PageQuery) -> Page[DocumentUpdate]:
    """The changes of a document, newest first; the oldest changes are joined into one"""
    async with caller.read() as tx:
        await _find(tx, caller, id)
        return await paging.read_page(tx, rows.HISTORY, query, _update_to_wire, of_document=id)


def tag_of(document: DocumentSummary) -> str:
    """The ETag of a document. It changes whenever a reader would get a different answer."""
    return f'"{document.frontier}-{document.updated_at}"'


async def _set_archived(caller: Caller, document_id: str, archived: bool) -> Document:
    async with caller.write() as tx:
        row = await _find(tx, caller, document_id)
        if (row.archived_at is not None) != archived:
            statement = rows.ARCHIVE if archived else rows.UNARCHIVE
            await tx.run(statement, of_document=document_id, of_account=row.account_id, now=_next_moment(row))
        return await _read(tx, caller, document_id)


async def _work_out(caller: Caller, edit: PlannedEdit, content_size: int) -> ComputedEdit:
    """Compute an edit of a document in a worker process. `content_size`: bytes of the new content as JSON."""
    size = WEIGHT * (content_size + sum(map(len, edit.base)) + sum(map(len, edit.later)))
    return await caller.node.workers.run(caller.payer, size, work_out, edit)


async def _store(
    tx: Tx,
    row: DocumentRow,
    title: str | None,
    base: int,
    joined: Sequence[UpdateRow],
    apart: Sequence[UpdateRow],
    edited: ComputedEdit,
) -> Document:
    """Store an edit of the document `row` with its new content. `base`: the version that was edited.
    `joined`: the oldest updates of the document; if the edit came with a snapshot, it replaces them. `apart`:
    the document's other updates."""
    title = row.title if title is None else title
    now, number = _next_moment(row), row.head + 1
    if edited.snapshot is not None:
        last = joined[-1]
        snapshot = UpdateRow(last.number, joined[0].first, 0, edited.snapshot, last.created_at)
        await tx.run(rows.DROP_UNTIL, of_document=row.id, until=last.number)
        await _add_update(tx, row.id, snapshot)
        apart = [snapshot, *apart]
    await _add_update(tx, row.id, UpdateRow(number, number, base, edited.operations, now))
    size = _size_of(edited) + sum(len(update.operations) for update in apart)
    if size > limits.DOCUMENT_STATE_BYTES:
        raise QuotaExceeded(
            f"the operations of this document would have {size} bytes; the limit is "
            f"{limits.DOCUMENT_STATE_BYTES}: copy its content into a new one",
            "bytes",
            size,
            limits.DOCUMENT_STATE_BYTES,
        )
    await _require_room(tx, row.account_id, size - row.size)
    await tx.run(
        rows.CHANGE,
        of_document=row.id,
        of_account=row.account_id,
        new_title=title,
        new_content=edited.content,
        new_head=number,
        new_size=size,
        now=now,
    )
    changed = DocumentRow(row.id, row.account_id, title, number, size, row.created_at, now, None)
    return _to_wire(changed, edited.content)


async def _add_update(tx: Tx, document_id: str, update: UpdateRow) -> None:
    await tx.run(
        rows.ADD,
        document_id=document_id,
        number=update.number,
        first=update.first,
        base=update.base,
        operations=update.operations,
        created_at=update.created_at,
    )


async def _require_room(tx: Tx, account: str, more: int, new: int = 0) -> None:
    """Raise QuotaExceeded if the account cannot have `new` further documents, or `more` further bytes of
    documents."""
    row = await tx.one(rows.USED, of_account=account)
    count, size = (int(row[0]), int(row[1])) if row else (0, 0)
    if count + new > limits.DOCUMENTS:
        raise QuotaExceeded(
            f"you have {limits.DOCUMENTS} documents, and no account has more; delete what is not needed",
            "documents",
            count,
            limits.DOCUMENTS,
        )
    if more > 0 and size + more > limits.DOCUMENTS_BYTES:
        raise QuotaExceeded(
            f"your documents would have {size + more} bytes together, and the limit is "
            f"{limits.DOCUMENTS_BYTES}; delete what is not needed",
            "bytes",
            size,
            limits.DOCUMENTS_BYTES,
        )


async def _find(tx: Tx, caller: Caller, document_id: str) -> DocumentRow:
    row = await tx.one(rows.ONE, of_document=document_id, of_account=caller.me.account_id)
    if row is None:
        raise NotFound
    return document_row(row)


async def _read(tx: Tx, caller: Caller, document_id: str) -> Document:
    """The document with its content. Both are read in one statement, because otherwise they could belong to
    different versions."""
    row = await tx.one(rows.WHOLE, of_document=document_id, of_account=caller.me.account_id)
    if row is None:
        raise NotFound
    *columns, content = row
    return _to_wire(document_row(columns), bytes(content))


def _require_writable(row: DocumentRow) -> None:
    if row.archived_at is not None:
        raise DocumentArchived(row.title, row.id)


def _require_match(row: DocumentRow, if_match: str | None) -> None:
    """Raise DocumentMoved if the request has an If-Match header that does not match the document (RFC 9110
    13.1.1)."""
    if if_match is None:
        return
    tags = {tag.strip() for tag in if_match.split(",")}
    tag = tag_of(_to_summary(row))
    if "*" not in tags and tag not in tags:
        raise DocumentMoved("the document changed meanwhile; read it again", frontier=str(row.head))


def _next_moment(row: DocumentRow) -> int:
    """The time to store for a change: now, but later than the document's last change. So two changes of one
    document have different times."""
    return max(now_ms(), row.updated_at + 1)


def _size_of(edited: ComputedEdit) -> int:
    return len(edited.operations) + len(edited.content)


def _update_to_wire(row: Row) -> DocumentUpdate:
    number, first, base, size, created_at = row
    return DocumentUpdate(number=number, first=first, base=base, bytes=size, created_at=rfc3339(created_at))


def _to_summary(row: DocumentRow) -> DocumentSummary:
    return DocumentSummary(
        id=row.id,
        title=row.title,
        mode=STORED,
        owner=row.account_id,
        archived=row.archived_at is not None,
        frontier=str(row.head),
        at_head=True,
        checkpoint_id=None,
        created_at=rfc3339(row.created_at),
        updated_at=rfc3339(row.updated_at),
    )


def _to_wire(row: DocumentRow, content: bytes) -> Document:
    return Document(**msgspec.structs.asdict(_to_summary(row)), content=msgspec.Raw(content))
