"""SQL statements of the operator's commands."""

from __future__ import annotations

from typing import Any

from sqlalchemy import bindparam, func, select, update

from relay.db.engine.keyset import Keyset
from relay.db.schema.account import account, device_key, known_address, session
from relay.db.schema.repo import repo
from relay.db.schema.usage import account_usage

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

# An account of a person; what is suspended already stays suspended since then.
_PERSON = (account.c.handle == bindparam("of_handle"), account.c.kind == "user")
DISABLED_AT = select(account.c.id, account.c.disabled_at).where(*_PERSON)
SET_DISABLED = update(account).where(*_PERSON).values(disabled_at=bindparam("at"))

# Guests have no handle; their id stands for it.
_name = func.coalesce(account.c.handle, account.c.id).label("name")
_ACCOUNTS = select(_name, account.c.id, account.c.kind, account.c.created_at, account.c.disabled_at)
ACCOUNTS = Keyset(_ACCOUNTS, "name")
ACCOUNTS_OF_KIND = Keyset(_ACCOUNTS.where(account.c.kind == bindparam("of_kind")), "name")
_of: Any = bindparam("accounts", expanding=True)
# What tells of sign-ins: sessions until two days after their end, networks for 90 days, keys for ever.
SIGNED_IN = tuple(
    select(column.table.c.account_id, func.max(column))
    .where(column.table.c.account_id.in_(_of))
    .group_by(column.table.c.account_id)
    for column in (session.c.created_at, known_address.c.seen_at, device_key.c.last_used_at)
)
USED = select(
    account_usage.c.account_id,
    account_usage.c.bytes + account_usage.c.deleted_bytes,
    account_usage.c.repositories,
).where(account_usage.c.account_id.in_(_of))
