"""SQL statements on documents and their operations."""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import and_, bindparam, delete, func, insert, select, update

from relay.db.engine.database import Row
from relay.db.engine.keyset import Keyset
from relay.db.schema.document import document, document_update


@dataclass(slots=True, frozen=True)
class DocumentRow:
    """A document without its content. Times are in milliseconds."""

    id: str
    account_id: str
    title: str
    head: int
    size: int
    created_at: int
    updated_at: int
    archived_at: int | None


@dataclass(slots=True, frozen=True)
class UpdateRow:
    """A stored update of a document. If `first` is less than `number`, it has the operations of all updates
    from `first` to `number`, joined into one."""

    number: int
    first: int
    base: int
    operations: bytes
    created_at: int


COLUMNS = (
    document.c.id,
    document.c.account_id,
    document.c.title,
    document.c.head,
    document.c.size,
    document.c.created_at,
    document.c.updated_at,
    document.c.archived_at,
)
_MINE = document.c.account_id == bindparam("of_account")
_ONE = and_(document.c.id == bindparam("of_document"), _MINE)
_OF = document_update.c.document_id == bindparam("of_document")
_LIST = select(*COLUMNS).where(_MINE)
ALL = Keyset(_LIST, "-created_at", "id")
ACTIVE = Keyset(_LIST.where(document.c.archived_at.is_(None)), "-created_at", "id")
ARCHIVED = Keyset(_LIST.where(document.c.archived_at.is_not(None)), "-created_at", "id")
ONE = select(*COLUMNS).where(_ONE)
WHOLE = select(*COLUMNS, document.c.content).where(_ONE)
USED = select(func.count(), func.coalesce(func.sum(document.c.size), 0)).select_from(document).where(_MINE)
INSERT = insert(document)
CHANGE = (
    update(document)
    .where(_ONE)
    .values(
        title=bindparam("new_title"),
        content=bindparam("new_content"),
        head=bindparam("new_head"),
        size=bindparam("new_size"),
        updated_at=bindparam("now"),
    )
)
ARCHIVE = update(document).where(_ONE).values(archived_at=bindparam("now"), updated_at=bindparam("now"))
UNARCHIVE = update(document).where(_ONE).values(archived_at=None, updated_at=bindparam("now"))
DELETE = delete(document).where(_ONE)

UPDATES = (
    select(
        document_update.c.number,
        document_update.c.first,
        document_update.c.base,
        document_update.c.operations,
        document_update.c.created_at,
    )
    .where(_OF)
    .order_by(document_update.c.number)
)
HISTORY = Keyset(
    select(
        document_update.c.number,
        document_update.c.first,
        document_update.c.base,
        func.length(document_update.c.operations).label("size"),
        document_update.c.created_at,
    ).where(_OF),
    "-number",
)
ADD = insert(document_update)
DROP_UNTIL = delete(document_update).where(_OF, document_update.c.number <= bindparam("until"))
DROP = delete(document_update).where(_OF)


def document_row(row: Row) -> DocumentRow:
    return DocumentRow(*row)


def update_row(row: Row) -> UpdateRow:
    number, first, base, operations, created_at = row
    return UpdateRow(number, first, base, bytes(operations), created_at)
