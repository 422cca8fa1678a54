"""SQL statements for WebSockets that follow events: which accounts may see given repositories, and which
sessions are still valid. One result serves all sockets."""

from __future__ import annotations

from typing import Any

from sqlalchemy import bindparam, select, union_all

from relay.db.repo import ALIVE, PUBLIC
from relay.db.schema.account import account, device_key, session
from relay.db.schema.repo import collaborator, repo

# Who sees these repositories, for all listeners at once: the owner and whether everybody does, once for each
# collaborator. The rule is `relay.db.repo.VISIBLE_TO_ME`.
SEEN_BY = (
    select(repo.c.id, repo.c.owner_id, PUBLIC, collaborator.c.account_id, collaborator.c.role)
    .select_from(repo.outerjoin(collaborator, collaborator.c.repo_id == repo.c.id))
    .where(repo.c.id.in_(bindparam("ids", expanding=True)), ALIVE)
)
# Of these ids of sessions, and of keys that signed in by themselves, those that still hold.
_IDS: Any = bindparam("ids", expanding=True)
LIVING = union_all(
    select(session.c.id)
    .select_from(session.join(account, account.c.id == session.c.account_id))
    .where(
        session.c.id.in_(_IDS),
        session.c.revoked_at.is_(None),
        session.c.expires_at > bindparam("now"),
        account.c.disabled_at.is_(None),
    ),
    select(device_key.c.id)
    .select_from(device_key.join(account, account.c.id == device_key.c.account_id))
    .where(device_key.c.id.in_(_IDS), device_key.c.revoked_at.is_(None), account.c.disabled_at.is_(None)),
)
