"""Statements that a listening socket repeats: may it still see this, does its session still live."""

from __future__ import annotations

from sqlalchemy import and_, bindparam, select

from relay.db.repo import VISIBLE_TO_ME
from relay.db.schema import account, collaborator, repo, session

_FROM = repo.outerjoin(
    collaborator,
    and_(collaborator.c.repo_id == repo.c.id, collaborator.c.account_id == bindparam("account")),
)

VISIBLE = (
    select(repo.c.id).select_from(_FROM).where(repo.c.id.in_(bindparam("ids", expanding=True)), VISIBLE_TO_ME)
)
ALIVE = (
    select(session.c.id)
    .select_from(session.join(account, account.c.id == session.c.account_id))
    .where(
        session.c.id == bindparam("session_id"),
        session.c.revoked_at.is_(None),
        session.c.expires_at > bindparam("now"),
        account.c.disabled_at.is_(None),
    )
)
