"""SQL statements on sessions and on the chain of refresh tokens that each session has."""

from __future__ import annotations

from dataclasses import dataclass

import msgspec
from sqlalchemy import and_, bindparam, delete, func, insert, or_, select, update

from relay.db.engine.database import Row
from relay.db.engine.keyset import Keyset
from relay.db.schema.account import account, device_key, refresh_token, session


@dataclass(slots=True, frozen=True)
class SessionRow:
    """A session as its owner sees it in the list of sessions. Times are in milliseconds."""

    id: str
    kind: str
    label: str
    device_key_id: str | None
    created_at: int
    expires_at: int
    last_used_at: int | None


@dataclass(slots=True, frozen=True)
class RefreshRow:
    """A refresh token and the session that it continues. `used_at`: None for one that was not used yet.
    `expires_at`: when the session ends."""

    used_at: int | None
    session_id: str
    account_id: str
    expires_at: int


class LiveSession(msgspec.Struct, frozen=True):
    """The columns of a session and its account that a request needs, read in one query."""

    kind: str
    device_key_id: str | None
    expires_at: int
    last_used_at: int | None
    account_kind: str
    handle: str | None
    phase: str


COLUMNS = (
    session.c.id,
    session.c.kind,
    session.c.label,
    session.c.device_key_id,
    session.c.created_at,
    session.c.expires_at,
    session.c.last_used_at,
)
_OPEN = and_(session.c.revoked_at.is_(None), session.c.expires_at > bindparam("now"))

# The session lives, its account does, and the registered key it is bound to, if any, was not revoked. In
# parts, because the gate reads the repository in the same statement (`relay.db.identity.gate`).
HOLDER = account.alias("holder")
LIVE_COLUMNS = (
    session.c.kind,
    session.c.device_key_id,
    session.c.expires_at,
    session.c.last_used_at,
    HOLDER.c.kind,
    HOLDER.c.handle,
    HOLDER.c.phase,
)
LIVE_FROM = session.join(HOLDER, HOLDER.c.id == session.c.account_id).outerjoin(
    device_key, device_key.c.id == session.c.device_key_id
)
IS_LIVE = and_(
    session.c.id == bindparam("session_id"),
    session.c.account_id == bindparam("account"),
    _OPEN,
    HOLDER.c.disabled_at.is_(None),
    device_key.c.revoked_at.is_(None),
)
LIVE = select(*LIVE_COLUMNS).select_from(LIVE_FROM).where(IS_LIVE)
INSERT = insert(session)
# Sessions of an account that began by this way of sign-in, and those made from them, without the current one.
OTHERS_BY_WAY = (
    select(func.count())
    .select_from(session)
    .where(
        session.c.account_id == bindparam("account"),
        session.c.way == bindparam("by"),
        session.c.id != bindparam("current"),
        _OPEN,
    )
)
WAY = select(session.c.way).where(session.c.id == bindparam("id"))
TOUCH = (
    update(session).where(session.c.id == bindparam("session_id")).values(last_used_at=bindparam("used_at"))
)
RENAME_OF_KEY = (
    update(session)
    .where(
        session.c.account_id == bindparam("of_account"),
        session.c.device_key_id == bindparam("of_key"),
        session.c.kind == "device",
    )
    .values(label=bindparam("new_label"))
)
PAGE = Keyset(select(*COLUMNS).where(session.c.account_id == bindparam("account"), _OPEN), "-id")
# The ids of a session of this account and of its children, then of every session bound to a key.
FAMILY = select(session.c.id).where(
    session.c.account_id == bindparam("account"),
    session.c.revoked_at.is_(None),
    or_(session.c.id == bindparam("id"), session.c.parent_id == bindparam("id")),
)
BOUND_TO = select(session.c.id).where(
    session.c.account_id == bindparam("account"),
    session.c.revoked_at.is_(None),
    session.c.device_key_id == bindparam("key_id"),
)
REVOKE = (
    update(session)
    .where(session.c.id.in_(bindparam("ids", expanding=True)), session.c.revoked_at.is_(None))
    .values(revoked_at=bindparam("now"))
)

INSERT_REFRESH = insert(refresh_token)
REFRESH = (
    select(refresh_token.c.used_at, session.c.id, session.c.account_id, session.c.expires_at)
    .select_from(refresh_token.join(session, session.c.id == refresh_token.c.session_id))
    .where(refresh_token.c.hash == bindparam("hash"), session.c.revoked_at.is_(None))
)
USE_REFRESH = (
    update(refresh_token)
    .where(refresh_token.c.hash == bindparam("token_hash"), refresh_token.c.used_at.is_(None))
    .values(used_at=bindparam("now"))
)
SWEEP_REFRESH = delete(refresh_token).where(refresh_token.c.expires_at < bindparam("now"))


def to_refresh(columns: Row) -> RefreshRow:
    return RefreshRow(*columns)


def to_row(columns: Row) -> SessionRow:
    return SessionRow(*columns)


def to_live_session(columns: Row) -> LiveSession:
    return LiveSession(*columns)
