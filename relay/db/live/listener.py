"""Statements that a listening socket repeats: may it still see this, does its session still live."""

from __future__ import annotations

from typing import Any

from sqlalchemy import and_, bindparam, select, union_all

from relay.db.repo import VISIBLE_TO_ME
from relay.db.schema.account import account, device_key, session
from relay.db.schema.repo import collaborator, repo

_FROM = repo.outerjoin(
    collaborator,
    and_(collaborator.c.repo_id == repo.c.id, collaborator.c.account_id == bindparam("account")),
)

VISIBLE = (
    select(repo.c.id).select_from(_FROM).where(repo.c.id.in_(bindparam("ids", expanding=True)), VISIBLE_TO_ME)
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
