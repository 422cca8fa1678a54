"""SQL statements on accounts and their handles."""

from __future__ import annotations

from dataclasses import dataclass, field

from sqlalchemy import and_, bindparam, insert, literal_column, select, update

from relay.db.engine.database import Row
from relay.db.schema.account import account
from relay.db.schema.repo import repo, repo_alias


@dataclass(slots=True, frozen=True)
class AccountRow:
    id: str
    kind: str
    handle: str | None
    email: str | None
    name: str | None
    password_hash: str | None = field(repr=False)
    phase: str


COLUMNS = (
    account.c.id,
    account.c.kind,
    account.c.handle,
    account.c.email,
    account.c.name,
    account.c.password_hash,
    account.c.phase,
)
_ALIVE = account.c.disabled_at.is_(None)

BY_ID = select(*COLUMNS).where(account.c.id == bindparam("id"), _ALIVE)
BY_HANDLE = select(*COLUMNS).where(account.c.handle == bindparam("handle"), _ALIVE)
KIND = select(account.c.kind).where(account.c.id == bindparam("id"))
INSERT = insert(account)
SET_HANDLE = (
    update(account).where(account.c.id == bindparam("account_id")).values(handle=bindparam("new_handle"))
)

# Whose handle this is or, for a while after they changed it, was.
HANDLE_OWNER = select(account.c.id).where(account.c.handle == bindparam("handle"))
HANDLE_FORMER_OWNER = (
    select(repo.c.owner_id)
    .select_from(repo_alias.join(repo, repo.c.id == repo_alias.c.repo_id))
    .where(repo_alias.c.owner == bindparam("handle"), repo_alias.c.expires_at > bindparam("now"))
    .limit(literal_column("1"))
)
OWNED_REPOS = select(repo.c.id, repo.c.name).where(repo.c.owner_id == bindparam("account_id"))
DROP_ALIASES = repo_alias.delete().where(repo_alias.c.owner == bindparam("handle"))
DROP_ALIAS = repo_alias.delete().where(
    and_(repo_alias.c.owner == bindparam("handle"), repo_alias.c.name == bindparam("name"))
)
INSERT_ALIAS = insert(repo_alias)


def to_row(values: Row) -> AccountRow:
    return AccountRow(*values)
