"""The gate's one statement: the session of a token, and the repository of the path as its account sees it."""

from __future__ import annotations

from typing import Any

from sqlalchemy import and_, bindparam, select

from relay.db import repo as repos
from relay.db.engine.database import Row
from relay.db.identity import session as sessions
from relay.db.schema.account import account
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


def parts(found: Row) -> tuple[Row, Row | None]:
    """The row of `sessions.LIVE` and that of `repos.VISIBLE`, None where it would have none."""
    width = len(sessions.LIVE_COLUMNS)
    return found[:width], None if found[width] is None else found[width:]
