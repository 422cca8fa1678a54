"""SQL statements of the operator's commands."""

from __future__ import annotations

from sqlalchemy import bindparam, select, update

from relay.db.schema.account import account
from relay.db.schema.repo import repo

STATE = (
    select(repo.c.id, repo.c.state, repo.c.resume_state)
    .select_from(repo.join(account, account.c.id == repo.c.owner_id))
    .where(account.c.handle == bindparam("owner"), repo.c.name == bindparam("name"))
)
SET_STATE = (
    update(repo)
    .where(repo.c.id == bindparam("repo_id"))
    .values(state=bindparam("new_state"), resume_state=bindparam("resume"), updated_at=bindparam("now"))
)
