"""SQL statements on branches and tags."""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import and_, bindparam, func, insert, select, update

from relay.db.engine.database import Row
from relay.db.schema.live import lane
from relay.db.schema.ref import ref


@dataclass(slots=True, frozen=True)
class RefRow:
    """A branch or tag. `seq`: how many live updates a branch has had; `sealed_seq`: how many of them its head
    contains. `base`: root of the tree with which its live frontier began, None for an empty one."""

    id: str
    repo_id: str
    type: str
    name: str
    head: str | None
    seq: int
    sealed_seq: int
    base: bytes | None = None


COLUMNS = (
    ref.c.id,
    ref.c.repo_id,
    ref.c.type,
    ref.c.name,
    ref.c.head,
    ref.c.seq,
    ref.c.sealed_seq,
    ref.c.base,
)
_LIVING = and_(ref.c.repo_id == bindparam("repo_id"), ref.c.deleted_at.is_(None))
_NAMED = and_(_LIVING, ref.c.type == bindparam("type"), ref.c.name == bindparam("name"))

ONE = select(*COLUMNS).where(_NAMED)
BY_ID = select(*COLUMNS).where(_LIVING, ref.c.id == bindparam("ref_id"))
PAGE = (
    select(*COLUMNS)
    .where(_LIVING, ref.c.type == bindparam("type"), ref.c.name > bindparam("after"))
    .order_by(ref.c.name)
    .limit(bindparam("limit"))
)
INSERT = insert(ref)
MOVE = (
    update(ref)
    .where(ref.c.id == bindparam("ref_id"), ref.c.head.is_not_distinct_from(bindparam("expected")))
    .values(head=bindparam("new_head"), updated_at=bindparam("now"))
)
DELETE = (
    update(ref)
    .where(ref.c.id == bindparam("ref_id"), ref.c.deleted_at.is_(None))
    .values(deleted_at=bindparam("now"))
)
UNSEALED = select(func.count()).where(
    lane.c.branch_id == bindparam("branch_id"), lane.c.ver > bindparam("sealed")
)


def to_row(columns: Row) -> RefRow:
    return RefRow(*columns)
