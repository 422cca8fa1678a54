"""The SQL statements of the gate. The first one reads the session of a token, and the repository that the
path names, as the session's account sees it. The others read both again in a write transaction."""

from __future__ import annotations

from typing import Any

from sqlalchemy import and_, bindparam, select

from relay.db import repo as repos
from relay.db.engine.database import Row
from relay.db.identity import session as sessions
from relay.db.schema.account import account, device_key, session
from relay.db.schema.repo import collaborator, repo

_REPO: Any = bindparam("repo_id")

# Columns of LiveSession, then those of `repos.VISIBLE`. No row: the session has ended. A repository that is
# missing or hidden leaves its columns null: the visibility rule is part of the join.
LIVE_AND_VISIBLE = (
    select(*sessions.LIVE_COLUMNS, *repos.COLUMNS, repos.ROLE)
    .select_from(
        sessions.LIVE_FROM.outerjoin(
            collaborator,
            and_(collaborator.c.repo_id == _REPO, collaborator.c.account_id == bindparam("account")),
        )
        .outerjoin(repo, and_(repo.c.id == _REPO, repos.VISIBLE_TO_ME))
        .outerjoin(account, account.c.id == repo.c.owner_id)
    )
    .where(sessions.IS_LIVE)
)


# The same inside a write transaction: columns of `repos.VISIBLE`. No row: the session, or the key that signs
# by itself, was revoked, or its account disabled. A repository that is hidden by now leaves its columns null.


def _recheck(credentials: Any, is_live: Any) -> Any:
    """Make the statement that reads a repository a second time, if the caller's credential is still valid.
    `credentials`: the table of sessions or keys; `is_live`: the condition that selects the caller's valid
    credential there."""
    holder = sessions.HOLDER
    return (
        select(*repos.COLUMNS, repos.ROLE)
        .select_from(
            credentials.join(holder, holder.c.id == bindparam("account"))
            .outerjoin(
                collaborator,
                and_(collaborator.c.repo_id == _REPO, collaborator.c.account_id == bindparam("account")),
            )
            .outerjoin(repo, and_(repo.c.id == _REPO, repos.VISIBLE_TO_ME))
            .outerjoin(account, account.c.id == repo.c.owner_id)
        )
        .where(is_live, holder.c.disabled_at.is_(None), device_key.c.revoked_at.is_(None))
    )


_OF_ACCOUNT: Any = bindparam("account")
LIVE_BY_SESSION = _recheck(
    session.outerjoin(device_key, device_key.c.id == session.c.device_key_id),
    and_(
        session.c.id == bindparam("credential"),
        session.c.account_id == _OF_ACCOUNT,
        session.c.revoked_at.is_(None),
    ),
)
LIVE_BY_KEY = _recheck(
    device_key, and_(device_key.c.id == bindparam("credential"), device_key.c.account_id == _OF_ACCOUNT)
)


def split_row(columns: Row) -> tuple[Row, Row | None]:
    """Split a row that was read with one statement into (columns of the session, columns of the repository).
    The second part is None if the repository is hidden or missing."""
    width = len(sessions.LIVE_COLUMNS)
    return columns[:width], None if columns[width] is None else columns[width:]
