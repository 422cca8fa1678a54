"""SQL statements on the event log, which lists the events of repositories and accounts in order."""

from __future__ import annotations

from typing import Any

from sqlalchemy import bindparam, delete, func, insert, select

from relay.db.engine.upsert import InsertNew
from relay.db.schema.account import audit
from relay.db.schema.event import cursor, event

LIVE = "live"  # the kind of unsealed edits; kept for two days
COLUMNS = (
    event.c.id,
    event.c.repo_id,
    event.c.account_id,
    event.c.number,
    event.c.kind,
    event.c.actor,
    event.c.device_key_id,
    event.c.turn,
    event.c.audience,
    event.c.data,
    event.c.created_at,
)

# `id` None: SQLite counts.
INSERT = insert(event).values({one: bindparam(one.name) for one in COLUMNS}).returning(event.c.id)
INSERT_MANY = insert(event)
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

# --- followers; `last`: no new event can appear up to here
_KINDS: Any = bindparam("kinds", expanding=True)
OF_KINDS = (
    select(*COLUMNS)
    .where(event.c.id > bindparam("since"), event.c.id <= bindparam("last"), event.c.kind.in_(_KINDS))
    .order_by(event.c.id)
    .limit(bindparam("limit"))
)
CURSOR = select(cursor.c.at).where(cursor.c.name == bindparam("name"))
CURSOR_FIRST = InsertNew(cursor)
CURSOR_TO = cursor.update().where(cursor.c.name == bindparam("follower")).values(at=bindparam("to"))

# --- sweeping. A follower of nothing needs `live`, and whoever listens from before `swept` reads all anew.
SWEPT = "swept"
OLD_LIVE = (
    select(event.c.id)
    .where(event.c.kind == LIVE, event.c.created_at < bindparam("before"))
    .order_by(event.c.id)
    .limit(bindparam("limit"))
)
DROP = delete(event).where(event.c.id.in_(bindparam("ids", expanding=True)))
# Rows of a build from before this log, oldest first.
AUDIT = (
    select(audit.c.id, audit.c.at, audit.c.actor, audit.c.action, audit.c.subject, audit.c.data)
    .order_by(audit.c.id)
    .limit(bindparam("limit"))
)
AUDIT_DROP = delete(audit).where(audit.c.id <= bindparam("upto"))
