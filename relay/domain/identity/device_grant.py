"""Sign-in of a terminal through a browser (RFC 8628). The terminal requests a session, its user approves in
the browser, and the terminal claims the session once.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets

from localstore.core.encoding import b64u, unb64u
from localstore.core.errors import Forbidden, Gone, Invalid, NotFound
from localstore.core.identity import device_grant
from localstore.core.identity.device_grant import DEVICE_CODE_BYTES, GRANT_TYPE, Grant
from localstore.core.model import limits
from localstore.core.model.auth import (
    AccessDenied,
    Approval,
    ApprovalStatus,
    AuthorizationPending,
    DeviceCode,
    DeviceCodeStart,
    ExpiredToken,
    GrantError,
    SealedSession,
    SlowDown,
    TokenRequest,
    UnsupportedGrantType,
)
from relay.base.clock import now_ms
from relay.caller import Caller, Principal
from relay.capacity.limiter import Attempts
from relay.db.engine.database import UniqueViolation
from relay.domain.identity import audit
from relay.domain.identity import session as sessions
from relay.domain.identity.device_key import check_label, public_keys
from relay.domain.identity.rows import device_grant as rows
from relay.domain.identity.rows.device_grant import DeviceCodeRow

_STARTS = Attempts("device_code.address", 120, 600, "sign-ins of terminals that a network begins")
_GUESSES = Attempts("user_code.account", 10, 600, "codes of terminals that an account tries")
_GUESSES_ADDRESS = Attempts("user_code.address", 30, 600, "codes of terminals that a network tries")
_SLOWER = 5  # seconds added for each poll that came too soon
_INTERVAL_MAX = 60


async def start(caller: Caller, body: DeviceCodeStart) -> DeviceCode:
    """Start a terminal's sign-in

    The answer has two codes: one for polling, one to type into the browser.
    """
    _STARTS.count(caller.node.limiter, caller.network)
    ed25519, x25519 = public_keys(
        body.device_ed25519, body.transport_x25519, ("device_ed25519", "transport_x25519")
    )
    name, now = check_label(body.label), now_ms()
    code, user_code = secrets.token_bytes(DEVICE_CODE_BYTES), device_grant.new_user_code()
    async with caller.write() as tx:
        await tx.run(rows.SWEEP, now=now)
        try:
            await tx.run(
                rows.INSERT,
                hash=hashlib.sha256(code).digest(),
                user_code=user_code,
                x25519=x25519,
                ed25519=ed25519,
                label=name,
                state="pending",
                sealed=None,
                interval=limits.DEVICE_CODE_INTERVAL,
                polled_at=None,
                expires_at=now + limits.DEVICE_CODE * 1000,
            )
        except UniqueViolation:
            raise Gone("this sign-in collided with another one; start again") from None
    page = f"{caller.node.config.public_url}/cli/authorize"
    return DeviceCode(
        device_code=b64u(code),
        user_code=user_code,
        verification_uri=page,
        verification_uri_complete=f"{page}?user_code={user_code}",
        expires_in=limits.DEVICE_CODE,
        interval=limits.DEVICE_CODE_INTERVAL,
    )


async def find_waiting(caller: Caller, typed: str) -> DeviceCodeRow:
    """Find the pending sign-in with the code that the user typed. Raises NotFound for an unknown code, and
    Gone if the sign-in is decided or has expired. Wrong guesses are counted."""
    require_approver(caller)
    _GUESSES_ADDRESS.count(caller.node.limiter, caller.network)
    _GUESSES.count(caller.node.limiter, caller.me.account_id)
    code = device_grant.normalise_user_code(typed)
    async with caller.read() as tx:
        row = await tx.one(rows.BY_USER_CODE, user_code=code)
    if row is None:
        raise NotFound
    pending = rows.to_row(row)
    _GUESSES.give_back(caller.node.limiter, caller.me.account_id)
    _GUESSES_ADDRESS.give_back(caller.node.limiter, caller.network)
    if pending.state != "pending" or pending.expires_at <= now_ms():
        raise Gone("this sign-in was decided already or has expired; start it again in the terminal")
    return pending


async def decide(caller: Caller, body: Approval) -> ApprovalStatus:
    """Approve or deny a waiting terminal; the fingerprint must be the one that the terminal shows

    On approval, the session is encrypted for the terminal's key at once.
    """
    me = require_approver(caller)
    row = await find_waiting(caller, body.user_code)
    if not hmac.compare_digest(body.fingerprint.encode("utf-8", "replace"), fingerprint(row).encode()):
        raise Invalid("this is not the fingerprint of that sign-in; compare it again", pointer="/fingerprint")
    if body.decision == "deny":
        return await _deny(caller, me, row)
    expires_at = min(now_ms() + limits.CLI_SESSION * 1000, me.session_ends)
    plan = await sessions.plan_session(
        caller.node,
        me.account_id,
        "cli",
        row.label or "terminal",
        expires_at,
        bound_key=row.ed25519,
        parent_id=me.session_id,
    )
    grant = Grant(
        origin=caller.node.config.public_url,
        device_code_sha256=b64u(row.hash),
        token=plan.token,
        account=me.account_id,
        expires_at=expires_at // 1000,
        parent_session=me.session_id,
    )
    box = device_grant.seal_grant(grant, row.x25519)
    async with caller.write() as tx:
        decided = await tx.run(rows.DECIDE, code=row.user_code, decision="approved", box=box, now=now_ms())
        if not decided:
            raise Gone("this sign-in was decided already or has expired; start it again in the terminal")
        await plan.write(tx)
        await audit.record(
            tx, me.account_id, "session.start", plan.id, how="cli", label=row.label, address=caller.address
        )
    return ApprovalStatus(status="approved")


async def claim(caller: Caller, body: TokenRequest) -> SealedSession:
    """Claim the approved session; it is encrypted for a key of the terminal

    The session is handed out once. Raises the errors of RFC 8628.
    """
    if body.grant_type != GRANT_TYPE:
        raise UnsupportedGrantType(f"grant_type must be {GRANT_TYPE}")
    try:
        digest = hashlib.sha256(unb64u(body.device_code, DEVICE_CODE_BYTES)).digest()
    except Invalid:
        raise GrantError("this device code is invalid; run: svc login") from None
    now = now_ms()
    refused: GrantError
    async with caller.write(f"device code {digest.hex()}") as tx:
        row = await tx.one(rows.BY_HASH, hash=digest)
        if row is None:
            raise GrantError("this device code is unknown, was claimed or has expired; run: svc login")
        code = rows.to_row(row)
        if code.expires_at <= now:
            raise ExpiredToken("the sign-in took too long; run: svc login")
        if code.polled_at is not None and now - code.polled_at < code.interval * 1000 - 250:
            slower = min(code.interval + _SLOWER, _INTERVAL_MAX)
            await tx.run(rows.POLLED, code_hash=digest, now=now, seconds=slower)
            refused = SlowDown(f"wait {slower} seconds between polls", interval=slower)
        elif code.state == "pending":
            await tx.run(rows.POLLED, code_hash=digest, now=now, seconds=code.interval)
            refused = AuthorizationPending("nobody has decided in the browser yet")
        else:
            await tx.run(rows.CLAIM, hash=digest)
            if code.sealed is not None:
                sealed = b64u(code.sealed)
                return SealedSession(token_type="sealed", alg=device_grant.SEALED_ALG, sealed=sealed)  # noqa: S106  # a kind of token
            refused = AccessDenied("the sign-in was denied in the browser")
    raise refused


def fingerprint(row: DeviceCodeRow) -> str:
    """The fingerprint of a terminal's sign-in. The user compares it with the one that the terminal shows."""
    return device_grant.fingerprint(row.x25519, row.ed25519)


def require_approver(caller: Caller) -> Principal:
    """The signed-in caller, who approves or denies a terminal. Raises Forbidden unless the request comes from
    a browser session."""
    me = caller.me
    if me.via != "cookie":
        raise Forbidden("this decision is taken in a browser session, not with a token")
    return me


async def _deny(caller: Caller, me: Principal, row: DeviceCodeRow) -> ApprovalStatus:
    async with caller.write() as tx:
        await tx.run(rows.DECIDE, code=row.user_code, decision="denied", box=None, now=now_ms())
        await audit.record(tx, me.account_id, "session.denied", "", label=row.label, address=caller.address)
    return ApprovalStatus(status="denied")
