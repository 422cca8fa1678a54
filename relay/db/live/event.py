"""Statements on the event log: what happened in a repository, in order."""

from __future__ import annotations

from sqlalchemy import bindparam, func, insert, select

from relay.db.schema.event import event

COLUMNS = (event.c.id, event.c.repo_id, event.c.kind, event.c.data)

# `id` None: SQLite counts.
_WRITTEN = (event.c.id, event.c.repo_id, event.c.kind, event.c.data, event.c.created_at)
INSERT = insert(event).values({one: bindparam(one.name) for one in _WRITTEN}).returning(event.c.id)
LAST = select(func.coalesce(func.max(event.c.id), 0))
AFTER = select(*COLUMNS).where(event.c.id > bindparam("since")).order_by(event.c.id).limit(bindparam("limit"))
OF_REPO = (
    select(*COLUMNS)
    .where(event.c.repo_id == bindparam("repo_id"), event.c.id > bindparam("since"))
    .order_by(event.c.id)
    .limit(bindparam("limit"))
)
OF_REPOS = (
    select(*COLUMNS)
    .where(
        event.c.repo_id.in_(bindparam("repo_ids", expanding=True)),
        event.c.id > bindparam("since"),
        event.c.id <= bindparam("last"),
    )
    .order_by(event.c.id)
    .limit(bindparam("limit"))
)
