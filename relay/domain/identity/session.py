"""Sessions. They are created at sign-in, refreshed, listed and ended. A session that approves the sign-in of
a terminal is the parent of the terminal's session. When a parent ends, its children end too.
"""

from __future__ import annotations

import contextlib
import hashlib
import secrets
import uuid
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial

from localstore.core.encoding import b64u, unb64u
from localstore.core.errors import Conflict, Forbidden, Invalid, NotFound, SvcError, Unauthorized
from localstore.core.identity import bearer
from localstore.core.identity.keys import key_id
from localstore.core.model import limits
from localstore.core.model.auth import GuestNoRefresh, Session, SessionGrant, UserInfo
from localstore.core.model.base import Page, PageQuery
from relay.base.clock import now_ms, rfc3339, rfc3339_or_none
from relay.base.ids import new_account_id, new_id
from relay.caller import Caller, Principal, account_name
from relay.capacity import quota
from relay.db import paging
from relay.db.engine.database import Tx
from relay.db.identity import session as rows
from relay.db.identity.session import RefreshRow, SessionRow
from relay.domain.identity import audit
from relay.domain.identity.guesses import remember
from relay.domain.identity.rows import account as accounts
from relay.domain.identity.rows.account import AccountRow
from relay.node import Node

USER_CAPS = ("admin", "read", "write")
# Levels of the identity phases. A local account has the rights of one linked by OIDC.
LEVELS = {
    "ephemeral": 1,
    "recovery_phrase": 2,
    "local": 3,
    "oidc_linked": 3,
    "webauthn": 4,
    "multi_device": 5,
}

_REFRESH_BYTES = 32


@dataclass(frozen=True, slots=True)
class NewSession:
    """A new session with its secrets, which the relay does not store. `token` and `refresh` are text. Times
    are in milliseconds."""

    id: str
    account_id: str
    handle: str | None
    token: str
    refresh: str
    expires_at: int

    def grant(self) -> SessionGrant:
        return SessionGrant(
            user_id=self.account_id,
            session_id=self.id,
            expires_at=rfc3339(self.expires_at),
            token=self.token,
            handle=self.handle,
        )


@dataclass(frozen=True, slots=True)
class PlannedSession:
    """A session to be created. Its token is signed before the transaction, so that the database is not locked
    while the relay waits for the signature."""

    id: str
    account_id: str
    kind: str
    label: str
    caps: tuple[str, ...]
    expires_at: int
    token: str
    bound_key: bytes | None
    parent_id: str | None
    way: str | None

    async def write(self, tx: Tx) -> None:
        """Insert the session. If it has no way of sign-in, it gets that of its parent, the session that
        approved it."""
        way = self.way or (await tx.value(rows.WAY, id=self.parent_id) if self.parent_id else None)
        await tx.run(
            rows.INSERT,
            id=self.id,
            account_id=self.account_id,
            parent_id=self.parent_id,
            kind=self.kind,
            label=self.label,
            device_key_id=key_id(self.bound_key) if self.bound_key else None,
            caps=" ".join(self.caps),
            created_at=now_ms(),
            expires_at=self.expires_at,
            last_used_at=None,
            revoked_at=None,
            way=way,
        )


async def plan_session(
    node: Node,
    account_id: str,
    kind: str,
    label: str,
    expires_at: int,
    *,
    bound_key: bytes | None = None,
    caps: Iterable[str] = USER_CAPS,
    parent_id: str | None = None,
    token_until: int | None = None,
    way: str | None = None,
) -> PlannedSession:
    """Make a new session with its token, and return the session, which the caller has to write.
    `token_until`: when the token ends; a session that can be refreshed ends later than its token. `way`:
    password, device_key, or the name of an identity provider."""
    session_id, caps = new_id(), tuple(sorted(caps))
    token = await mint(node, account_id, session_id, caps, token_until or expires_at, bound_key)
    return PlannedSession(
        session_id, account_id, kind, label, caps, expires_at, token, bound_key, parent_id, way
    )


async def mint(
    node: Node,
    account_id: str,
    session_id: str,
    caps: Iterable[str],
    expires_at: int,
    bound_key: bytes | None = None,
) -> str:
    """Mint a capability token for a session and return its text. `expires_at` is in milliseconds."""
    raw = await node.signer.mint(
        user=uuid.UUID(account_id).bytes,
        session=bytes.fromhex(session_id),
        bound_key=bound_key,
        caps=caps,
        expires=datetime.fromtimestamp(expires_at // 1000, UTC),
    )
    return bearer.to_text(raw)


async def start_guest(caller: Caller) -> NewSession:
    """Create an account without credentials, and a session for it. The session lasts one day and cannot be
    refreshed."""
    now = now_ms()
    account_id, expires_at = new_account_id(), now + limits.GUEST_SESSION * 1000
    session = await plan_session(caller.node, account_id, "guest", "guest", expires_at)
    async with caller.write() as tx:
        await quota.count_account(tx, caller.network, caller.node.config.quota, guest=True)
        await tx.run(
            accounts.INSERT,
            id=account_id,
            kind="guest",
            handle=None,
            email=None,
            name=None,
            password_hash=None,
            phase="ephemeral",
            operator=False,
            created_at=now,
            disabled_at=None,
        )
        await session.write(tx)
    return NewSession(session.id, account_id, None, session.token, "", expires_at)


async def start_browser(
    caller: Caller,
    account: AccountRow,
    how: str,
    check: Callable[[Tx], Awaitable[None]] | None = None,
) -> NewSession:
    """Create a browser session of seven days, with an access token of one hour and a refresh token. `how`:
    the way of sign-in. `check`: a function that is called in the same transaction and raises an error if the
    session may no longer begin."""
    now = now_ms()
    expires_at, token_until = now + limits.REFRESH_TOKEN * 1000, now + limits.ACCESS_TOKEN * 1000
    session = await plan_session(
        caller.node, account.id, "browser", "browser", expires_at, token_until=token_until, way=how
    )
    refresh = secrets.token_bytes(_REFRESH_BYTES)
    async with caller.write() as tx:
        if check is not None:
            await check(tx)
        await session.write(tx)
        await _keep_refresh(tx, refresh, session.id, expires_at)
        await remember(tx, caller, account.id)
        await audit.record(tx, account.id, "session.start", session.id, how=how, address=caller.address)
    return NewSession(session.id, account.id, account.handle, session.token, b64u(refresh), token_until)


async def refresh(caller: Caller, token: str | None) -> NewSession:
    """Issue a new access token and refresh token for the same session.

    A refresh token works once. If it is used again within seconds, two tabs were probably in a race, and
    Conflict is raised. If it is used again later, it counts as stolen. The session then ends, and so do its
    children (sessions of terminals that it approved).
    """
    if caller.principal is not None and caller.principal.is_guest:
        raise GuestNoRefresh("a guest session ends after a day; sign in with an account to keep one")
    digest = _refresh_hash(token)
    new_refresh, now = secrets.token_bytes(_REFRESH_BYTES), now_ms()
    refused: SvcError | None = None
    async with caller.read() as tx:
        old = await _find_refresh(tx, digest)
    if old is None or old.expires_at <= now:
        raise _no_refresh()
    session_id, account_id, expires_at = old.session_id, old.account_id, old.expires_at
    until = min(now + limits.ACCESS_TOKEN * 1000, expires_at)
    # Mint before the old token is used up: if the signer is down, the old one stays valid.
    text = await mint(caller.node, account_id, session_id, USER_CAPS, until)
    async with caller.write(f"refresh {digest.hex()}") as tx:
        old = await _find_refresh(tx, digest)
        if old is None:
            raise _no_refresh()
        account = await tx.one(accounts.BY_ID, id=account_id)
        if account is None:
            raise _no_refresh()
        if old.used_at is None:
            await tx.run(rows.USE_REFRESH, token_hash=digest, now=now)
            await _keep_refresh(tx, new_refresh, session_id, expires_at)
        elif now - old.used_at <= limits.REFRESH_GRACE * 1000:
            refused = Conflict("another tab has just refreshed this session; read the new cookie")
        else:
            await end(tx, caller.node, account_id, session_id)
            await audit.record(tx, account_id, "session.refresh_reused", session_id, address=caller.address)
            refused = _no_refresh()
    if refused is not None:  # raised here, so that the end of the session is not rolled back
        raise refused
    return NewSession(session_id, account_id, accounts.to_row(account).handle, text, b64u(new_refresh), until)


def is_due(me: Principal) -> bool:
    """Whether a page should refresh the session first, because its access token ends soon although the
    session does not."""
    soon = me.expires_at - now_ms() <= limits.REFRESH_LEAD * 1000
    return soon and me.session_kind == "browser" and me.session_ends - me.expires_at >= 1000


async def sign_out(caller: Caller, refresh_token: str | None = None) -> None:
    """End the caller's session and its children (sessions of terminals that it approved). If the access token
    has expired, the refresh token identifies the session. If there is no session, nothing happens. Raises
    Forbidden for a narrowed token."""
    me, ended = caller.principal, None
    if me is not None and me.narrowed:
        raise Forbidden("this token was narrowed and cannot end its session; sign out where you signed in")
    if me is not None and me.via != "self":
        ended = (me.session_id, me.account_id)
    elif me is None and refresh_token:
        with contextlib.suppress(Unauthorized):
            ended = await _session_of(caller, refresh_token)
    if ended is None:
        return
    session_id, account_id = ended
    async with caller.write(account_name(account_id)) as tx:
        await end(tx, caller.node, account_id, session_id)
        await audit.record(tx, account_id, "session.end", session_id, address=caller.address)


async def page(caller: Caller, query: PageQuery) -> Page[Session]:
    """The caller's open sessions and script tokens, newest first"""
    account, now = caller.me.account_id, now_ms()
    async with caller.read() as tx:
        return await paging.read_page(
            tx, rows.PAGE, query, lambda row: _to_wire(caller, rows.to_row(row)), account=account, now=now
        )


async def revoke(caller: Caller, session_id: str) -> None:
    """End one of the caller's sessions or script tokens at once

    Raises NotFound for a session of another account.
    """
    me = caller.me
    async with caller.write() as tx:
        if not await end(tx, caller.node, me.account_id, session_id):
            raise NotFound
        await audit.record(tx, me.account_id, "session.revoke", session_id, address=caller.address)


async def end(tx: Tx, node: Node, account_id: str, session_id: str) -> list[str]:
    """End a session of this account and its children (sessions of terminals that it approved). Their sockets
    close after the commit. Returns the ids of the ended sessions."""
    return await end_all(
        tx, node, [row[0] for row in await tx.all(rows.FAMILY, account=account_id, id=session_id)]
    )


async def end_all(tx: Tx, node: Node, ids: list[str]) -> list[str]:
    """End these sessions and return their ids. Their sockets close after the commit."""
    if ids:
        await tx.run(rows.REVOKE, ids=ids, now=now_ms())
        tx.after_commit(partial(node.hub.end_sessions, ids))
    return ids


async def user_info(caller: Caller) -> UserInfo:
    """Who is signed in, and how"""
    me = caller.me
    async with caller.read() as tx:
        row = await tx.one(accounts.BY_ID, id=me.account_id)
        way = await tx.value(rows.WAY, id=me.session_id)
    if row is None:
        raise Unauthorized("the account no longer exists")
    account = accounts.to_row(row)
    return UserInfo(
        sub=account.id,
        user_id=account.id,
        handle=account.handle,
        phase=account.phase,  # type: ignore[arg-type]  # the column holds nothing else
        level=LEVELS[account.phase],
        expires_at=rfc3339(me.expires_at),
        session_id=me.session_id,
        session_kind=me.session_kind,
        device_key_id=me.device_key_id,
        name=account.name,
        email=account.email,
        signed_in_by=way,
    )


def _to_wire(caller: Caller, row: SessionRow) -> Session:
    return Session(
        id=row.id,
        kind=row.kind,  # type: ignore[arg-type]  # the column holds nothing else
        label=row.label,
        created_at=rfc3339(row.created_at),
        expires_at=rfc3339(row.expires_at),
        last_used_at=rfc3339_or_none(row.last_used_at),
        device_key_id=row.device_key_id,
        current=row.id == caller.me.session_id,
    )


async def _keep_refresh(tx: Tx, token: bytes, session_id: str, expires_at: int) -> None:
    await tx.run(rows.SWEEP_REFRESH, now=now_ms())
    digest = hashlib.sha256(token).digest()
    await tx.run(rows.INSERT_REFRESH, hash=digest, session_id=session_id, expires_at=expires_at, used_at=None)


async def _session_of(caller: Caller, refresh_token: str) -> tuple[str, str] | None:
    """Find the session that a refresh token belongs to, even if the token was used before. Returns (session
    id, account id), or None for an unknown token."""
    async with caller.read() as tx:
        row = await _find_refresh(tx, _refresh_hash(refresh_token))
    return None if row is None else (row.session_id, row.account_id)


async def _find_refresh(tx: Tx, digest: bytes) -> RefreshRow | None:
    columns = await tx.one(rows.REFRESH, hash=digest)
    return None if columns is None else rows.to_refresh(columns)


def _refresh_hash(token: str | None) -> bytes:
    try:
        return hashlib.sha256(unb64u(token or "", _REFRESH_BYTES)).digest()
    except Invalid:
        raise _no_refresh() from None


def _no_refresh() -> Unauthorized:
    return Unauthorized("this session can no longer be refreshed; sign in again", reason="refresh")
