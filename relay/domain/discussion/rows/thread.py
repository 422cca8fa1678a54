"""SQL statements on threads: their rows, the position of their lines, and how many are open."""

from __future__ import annotations

from functools import cache
from typing import Any, Literal

import msgspec
from sqlalchemy import ColumnElement, and_, bindparam, delete, func, insert, or_, select, true, update

from relay.db.engine.database import Row
from relay.db.engine.keyset import Keyset
from relay.db.schema.account import account
from relay.db.schema.collaboration.proposal import thread, version
from relay.db.schema.seal import seal_parent

_REPO: Any = bindparam("of_repo")
_NUMBER: Any = bindparam("of_number")
_ID: Any = bindparam("thread")


class ThreadRow(msgspec.Struct, frozen=True):
    """A thread. The fields `at_…` say where its lines were in the seal `carried_to`. For any other seal, the
    position of the lines must be searched again."""

    id: str
    author_id: str
    path: str
    side: Literal["old", "new"]
    first_line: int
    last_line: int
    seal_id: str
    quote: bytes
    state: Literal["open", "resolved"]
    draft: bool
    suggestion: str | None
    applied_seal: str | None
    at_seal: str
    at_path: str
    at_from: int
    at_to: int
    at_first: int
    at_last: int
    how: Literal["same", "moved", "edited"]
    carried_to: str
    created_at: int
    updated_at: int
    author_handle: str | None = None
    author_kind: str = "user"


COLUMNS = ThreadRow.__struct_fields__[:-2]  # of the table itself


def to_row(values: Row) -> ThreadRow:
    return ThreadRow(*values)


_OF = and_(thread.c.repo_id == _REPO, thread.c.number == _NUMBER)
_MINE = thread.c.author_id == bindparam("me")
_THREADS = (
    select(*(thread.c[name] for name in COLUMNS), account.c.handle, account.c.kind)
    .select_from(thread.join(account, account.c.id == thread.c.author_id))
    .where(_OF)
)
_VISIBLE = or_(thread.c.draft.is_(False), _MINE)
_SHOWN = _THREADS.where(_VISIBLE)
_PATHS = select(thread.c.id, thread.c.path, thread.c.at_path, thread.c.created_at).where(_OF, _VISIBLE)
_FILTERS: dict[str, ColumnElement[bool]] = {
    "state": thread.c.state == bindparam("state"),
    "path": or_(thread.c.path == bindparam("path"), thread.c.at_path == bindparam("path")),
    "draft": thread.c.draft == true(),
}


@cache
def keyset_of(filters: frozenset[str], paths: bool = False) -> Keyset:
    """SQL statements that read a page of threads, oldest first. `filters`: names of the `_FILTERS` to apply.
    `paths`: read only the paths. Drafts are read only for their author, whose account is the SQL parameter
    `me`."""
    start = _PATHS if paths else _SHOWN
    return Keyset(start.where(*(_FILTERS[name] for name in sorted(filters))), "created_at", "id")


ONE = _SHOWN.where(thread.c.id == _ID)
SOME = _SHOWN.where(thread.c.id.in_(bindparam("among", expanding=True)))
INSERT = insert(thread)
_THIS = and_(_OF, thread.c.id == _ID)
SET_STATE = update(thread).where(_THIS).values(state=bindparam("new_state"), updated_at=bindparam("now"))
TOUCH = update(thread).where(_THIS).values(updated_at=bindparam("now"))
DELETE = delete(thread).where(_THIS)
APPLIED = (
    update(thread)
    .where(_THIS)
    .values(state="resolved", applied_seal=bindparam("seal"), updated_at=bindparam("now"))
)
COUNT = select(func.count()).where(_OF)
COUNT_OPEN = select(func.count()).where(_OF, thread.c.state == "open")
SEND = update(thread).where(_OF, thread.c.draft, _MINE).values(draft=False, updated_at=bindparam("now"))

# How many are open and resolved, of many proposals; and the same by where they are.
_COUNTED = and_(
    thread.c.repo_id == _REPO,
    thread.c.number.in_(bindparam("numbers", expanding=True)),
    thread.c.draft.is_(False),
)
COUNTS = (
    select(thread.c.number, thread.c.state, func.count())
    .where(_COUNTED)
    .group_by(thread.c.number, thread.c.state)
)
_WHERE = (thread.c.number, thread.c.state, thread.c.path, thread.c.at_path)
COUNTS_BY_PATH = select(*_WHERE, func.count()).where(_COUNTED).group_by(*_WHERE)

# Open threads that have to be carried to these seals.
TO_CARRY = _THREADS.where(
    thread.c.state == "open",
    or_(
        and_(thread.c.side == "new", thread.c.carried_to != bindparam("head")),
        and_(thread.c.side == "old", thread.c.carried_to != bindparam("base")),
    ),
).limit(bindparam("limit"))
CARRIED = (
    update(thread)
    .where(_THIS, thread.c.carried_to == bindparam("was"))
    .values(
        {
            name: bindparam(f"new_{name}")
            for name in (
                "at_seal", "at_path", "at_from", "at_to", "at_first", "at_last", "how", "carried_to"
            )
        }
    )
)  # fmt: skip

# The version whose head was looked at: its merge base, and whether that is known.
VERSION_OF = (
    select(version.c.merge_base)
    .where(version.c.repo_id == _REPO, version.c.number == _NUMBER, version.c.head == bindparam("head"))
    .order_by(version.c.n.desc())
    .limit(1)
)
FIRST_PARENT = select(seal_parent.c.parent_id).where(
    seal_parent.c.seal_id == bindparam("seal"), seal_parent.c.position == 0
)
