"""SQL statements on API keys."""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import and_, bindparam, delete, func, insert, or_, select, update

from relay.db.engine.database import Row
from relay.db.engine.keyset import Keyset
from relay.db.schema.account import api_key


@dataclass(slots=True, frozen=True)
class ApiKeyRow:
    """An API key. `scopes`: words separated by spaces. Times in milliseconds."""

    id: str
    name: str
    prefix: str
    scopes: str
    created_at: int
    last_used_at: int | None
    expires_at: int | None
    revoked_at: int | None


COLUMNS = (
    api_key.c.id,
    api_key.c.name,
    api_key.c.prefix,
    api_key.c.scopes,
    api_key.c.created_at,
    api_key.c.last_used_at,
    api_key.c.expires_at,
    api_key.c.revoked_at,
)
_MINE = api_key.c.account_id == bindparam("of_account")
_ONE = and_(api_key.c.id == bindparam("of_key"), _MINE)
PAGE = Keyset(select(*COLUMNS).where(_MINE), "-created_at", "id")
ONE = select(*COLUMNS).where(_ONE)
COUNT = (
    select(func.count())
    .select_from(api_key)
    .where(
        _MINE,
        api_key.c.revoked_at.is_(None),
        or_(api_key.c.expires_at.is_(None), api_key.c.expires_at > bindparam("now")),
    )
)
INSERT = insert(api_key)
REVOKE = update(api_key).where(_ONE, api_key.c.revoked_at.is_(None)).values(revoked_at=bindparam("now"))
FORGET = delete(api_key).where(
    _MINE, func.coalesce(api_key.c.revoked_at, api_key.c.expires_at) < bindparam("before")
)
TOUCH = update(api_key).where(_ONE).values(last_used_at=bindparam("now"))
ROTATE = (
    update(api_key)
    .where(_ONE)
    .values(
        previous_hash=api_key.c.hash,
        previous_until=bindparam("until"),
        hash=bindparam("new_hash"),
        prefix=bindparam("new_prefix"),
    )
)
# The caller's own key of a secret, or of the one before within its overlap.
VALID = select(*COLUMNS).where(
    _MINE,
    or_(
        api_key.c.hash == bindparam("shown"),
        and_(
            api_key.c.previous_hash == bindparam("shown"),
            api_key.c.previous_until > bindparam("now"),
        ),
    ),
    api_key.c.revoked_at.is_(None),
    or_(api_key.c.expires_at.is_(None), api_key.c.expires_at > bindparam("now")),
)


def api_key_row(row: Row) -> ApiKeyRow:
    return ApiKeyRow(*row)
