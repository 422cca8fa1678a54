"""Device keys: registration by challenge, list, revocation, and sign-in with only a key.

A challenge is deleted in a separate transaction before the answer to it is checked. So each challenge allows
one try.
"""

from __future__ import annotations

import dataclasses
import secrets
import uuid
from collections.abc import Iterable
from functools import partial

from localstore.core import names
from localstore.core.encoding import b64u, unb64u
from localstore.core.errors import Forbidden, Gone, Invalid, NotFound, Unauthorized
from localstore.core.identity import device_grant
from localstore.core.identity.device_grant import CHALLENGE_BYTES, CHALLENGE_ID_BYTES, Purpose
from localstore.core.identity.keys import (
    KEY_BYTES,
    SIGNATURE_BYTES,
    check_ed25519,
    check_x25519,
    key_id,
    verify_registration,
)
from localstore.core.model import limits
from localstore.core.model.auth import (
    Challenge,
    DeviceKeyExists,
    DeviceKeyProof,
    DeviceKeyStart,
    HandleTaken,
    RegisteredKey,
    SignUpClosed,
)
from localstore.core.model.base import Page, PageQuery
from relay.base.clock import now_ms, rfc3339, rfc3339_or_none
from relay.caller import Caller, Principal
from relay.capacity.limiter import Attempts
from relay.db import paging
from relay.db.engine.database import Tx, UniqueViolation
from relay.db.identity import device_key as rows
from relay.db.identity import session as session_rows
from relay.db.identity.device_key import ChallengeRow, DeviceKeyRow
from relay.domain.identity import account as account_rules
from relay.domain.identity import audit, pairing
from relay.domain.identity import session as sessions
from relay.domain.identity.guesses import Guesses, is_known, remember
from relay.domain.identity.rows import account as accounts
from relay.domain.identity.rows.account import AccountRow
from relay.domain.identity.session import NewSession

_CHALLENGES = Attempts("challenge.address", 300, 600, "challenges for device keys of a network")
_ACCOUNTS = Attempts("device_key.new_account", 200, 3600, "accounts that a network makes with a device key")
_PAIRING_TRIES = Guesses("pairing", 1000, 600, "pairing codes")  # a code has 52 bits and lives ten minutes


async def begin_registration(caller: Caller, start: DeviceKeyStart) -> Challenge:
    """A challenge for registering a device's keys, which only their holder can answer

    The challenge is valid only for the signed-in account and session.
    """
    me, account = caller.me, caller.me.account_id
    return await _create_challenge(caller, Purpose.REGISTER, account, account, me.session_id, start)


async def register(caller: Caller, proof: DeviceKeyProof) -> RegisteredKey:
    """Register a device key by answering its challenge

    Raises Gone, SignatureInvalid or DeviceKeyExists.
    """
    me = caller.me
    challenge_row, challenge = await _take_challenge(caller, Purpose.REGISTER, proof)
    if (challenge_row.account, challenge_row.session_id) != (me.account_id, me.session_id):
        raise _no_challenge()
    challenge.check(decode_bytes(proof.signature, SIGNATURE_BYTES, "/signature"))
    async with caller.write() as tx:
        return to_wire(await _store_key(tx, caller, me.account_id, challenge_row, proof, lasting_caps(me)))


async def page(caller: Caller, query: PageQuery) -> Page[RegisteredKey]:
    """The caller's device keys, newest first

    Includes revoked keys.
    """
    account = caller.me.account_id
    async with caller.read() as tx:
        return await paging.read_page(
            tx, rows.PAGE, query, lambda row: to_wire(rows.to_row(row)), account=account
        )


async def revoke(caller: Caller, id: str) -> None:
    """Revoke a key and end its sessions; seals that it signed earlier stay valid"""
    me = caller.me
    async with caller.write() as tx:
        if not await tx.run(rows.REVOKE, key_id=id, account=me.account_id, now=now_ms()):
            raise NotFound
        bound = await tx.all(session_rows.BOUND_TO, account=me.account_id, key_id=id)
        await sessions.end_all(tx, caller.node, [row[0] for row in bound])
        tx.after_commit(partial(caller.node.hub.end_sessions, [id]))
        await audit.record(tx, me.account_id, "device_key.revoke", id, address=caller.address)


async def begin_sign_in(caller: Caller, start: DeviceKeyStart) -> Challenge:
    """A challenge for signing in with a device key, without a browser"""
    _require_allowed(caller)
    _CHALLENGES.count(caller.node.limiter, caller.network)
    if start.handle is None:
        raise Invalid("say which handle to sign in as", pointer="/handle")
    handle = names.handle(start.handle)
    async with caller.read() as tx:
        owner = await tx.value(accounts.HANDLE_OWNER, handle=handle)
    return await _create_challenge(caller, Purpose.LOGIN, handle, owner, None, start)


async def sign_in(caller: Caller, proof: DeviceKeyProof) -> NewSession:
    """Sign in with a device key. Returns a session bound to the key.

    A registered key signs in to its account. A new key gets a new account if the handle is free. To join an
    existing account, a new key needs a pairing code; without a code, HandleTaken is raised. A pairing code
    with a free handle raises Invalid: the user has probably mistyped the handle.
    """
    _require_allowed(caller)
    pair = pairing.hash_of(proof.pair)
    async with caller.read() as tx:
        challenge_row = await _read_challenge(tx, Purpose.LOGIN, proof)
        account, key = await _find_account_and_key(tx, challenge_row)
        known_network = await is_known(tx, caller, challenge_row.account)
    paired = account is not None and key is None and pair is not None
    # Limits come first: a client that one tells to wait answers the same challenge once more.
    if account is None and pair is None:
        _require_sign_up(caller)
        _ACCOUNTS.count(caller.node.limiter, caller.network)
    elif paired:
        _PAIRING_TRIES.count(caller, challenge_row.account, known_network)
    _, challenge = await _take_challenge(caller, Purpose.LOGIN, proof)
    challenge.check(decode_bytes(proof.signature, SIGNATURE_BYTES, "/signature"))
    if account is None and pair is not None:
        raise _no_account(challenge_row.account)
    if account is not None and key is not None and not key.caps:
        raise Forbidden(
            "this device key came with a script token and signs beside such a token only; sign in with "
            "svc login in a browser"
        )
    account_id = account.id if account else _future_account(challenge.challenge_id)
    plan = await sessions.plan_session(
        caller.node,
        account_id,
        "device",
        challenge_row.name or "device",
        now_ms() + limits.CLI_SESSION * 1000,
        bound_key=challenge_row.ed25519,
        caps=key.caps.split() if key else sessions.USER_CAPS,
        way="device_key",
    )
    async with caller.write(f"handle {challenge_row.account}") as tx:
        account, key = await _find_account_and_key(tx, challenge_row)
        if account is None:
            account = await account_rules.create_counted(tx, caller, challenge_row.account, account_id)
            await audit.record(tx, account_id, "account.create", account_id, handle=challenge_row.account)
        elif account.id != account_id or (key is None and not await pairing.use(tx, account, pair)):
            raise _handle_taken(challenge_row.account)
        if key is None:
            await _store_key(tx, caller, account.id, challenge_row, proof, sessions.USER_CAPS)
        else:
            await tx.run(rows.TOUCH, key_id=key.id, used_at=now_ms())
        await plan.write(tx)
        await remember(tx, caller, account.id)
        await audit.record(tx, account.id, "session.start", plan.id, how="device_key", address=caller.address)
    if paired:
        _PAIRING_TRIES.give_back(caller, challenge_row.account, known_network)
    return NewSession(plan.id, account.id, account.handle, plan.token, "", plan.expires_at)


def lasting_caps(me: Principal) -> frozenset[str]:
    """The rights that a new device key keeps after the session ends. If the caller may add devices
    permanently, they are the caller's rights. Otherwise there are none, because the key would outlive the
    caller's token."""
    return me.caps if "admin" in me.caps and not me.narrowed else frozenset()


def to_wire(row: DeviceKeyRow) -> RegisteredKey:
    return RegisteredKey(
        id=row.id,
        public_key=b64u(row.ed25519),
        name=row.name,
        created_at=rfc3339(row.created_at),
        last_used_at=rfc3339_or_none(row.last_used_at),
        revoked_at=rfc3339_or_none(row.revoked_at),
    )


def check_label(text: str) -> str:
    """Strip the name of a device or token and return it. Raises Invalid unless it is one line of limited
    length."""
    if len(text) > limits.LABEL_CHARS or not text.isprintable():
        raise Invalid(f"a name is one line of at most {limits.LABEL_CHARS} characters", pointer="/name")
    return text.strip()


def public_keys(ed25519: str, x25519: str, names: tuple[str, str]) -> tuple[bytes, bytes]:
    """Decode and validate the keys of a device. Returns (Ed25519 key, X25519 key). `names`: the fields of the
    body that have them, for errors."""
    signing = decode_bytes(ed25519, KEY_BYTES, f"/{names[0]}")
    transport = decode_bytes(x25519, KEY_BYTES, f"/{names[1]}")
    check_ed25519(signing)
    check_x25519(transport)
    return signing, transport


async def _create_challenge(
    caller: Caller,
    purpose: Purpose,
    account: str,
    registered_to: str | None,
    session_id: str | None,
    start: DeviceKeyStart,
) -> Challenge:
    ed25519, x25519 = public_keys(start.ed25519, start.x25519, ("ed25519", "x25519"))
    name, now = check_label(start.name), now_ms()
    challenge = device_grant.OpenedChallenge(
        purpose=purpose,
        origin=caller.node.config.public_url,
        account=account,
        challenge_id=secrets.token_bytes(CHALLENGE_ID_BYTES),
        ed25519=ed25519,
        x25519=x25519,
        secret=secrets.token_bytes(CHALLENGE_BYTES),
    )
    answer = Challenge(
        v=1,
        challenge_id=b64u(challenge.challenge_id),
        sealed_challenge=b64u(challenge.seal()),
        origin=challenge.origin,
        expires_in=limits.CHALLENGE,
        account=registered_to or _future_account(challenge.challenge_id),
    )
    async with caller.write() as tx:
        await tx.run(rows.SWEEP_CHALLENGES, now=now)
        await tx.run(
            rows.INSERT_CHALLENGE,
            id=b64u(challenge.challenge_id),
            purpose=purpose.name.lower(),
            account=account,
            session_id=session_id,
            ed25519=ed25519,
            x25519=x25519,
            name=name,
            secret=challenge.secret,
            expires_at=now + limits.CHALLENGE * 1000,
        )
    return answer


async def _read_challenge(tx: Tx, purpose: Purpose, proof: DeviceKeyProof) -> ChallengeRow:
    """Returns the row of the challenge that the proof answers. Raises Gone if it does not exist or has
    expired."""
    challenge_id = decode_bytes(proof.challenge_id, CHALLENGE_ID_BYTES, "/challenge_id")
    row = await tx.one(rows.CHALLENGE, id=b64u(challenge_id), purpose=purpose.name.lower())
    challenge_row = None if row is None else rows.challenge_row(row)
    if challenge_row is None or challenge_row.expires_at <= now_ms():
        raise _no_challenge()
    return challenge_row


async def _take_challenge(
    caller: Caller, purpose: Purpose, proof: DeviceKeyProof
) -> tuple[ChallengeRow, device_grant.OpenedChallenge]:
    """Delete the challenge that the proof answers. Returns (its row, the opened challenge). Raises Gone if it
    does not exist or has expired."""
    challenge_id = decode_bytes(proof.challenge_id, CHALLENGE_ID_BYTES, "/challenge_id")
    async with caller.write(effect=False) as tx:
        row = await tx.one(rows.TAKE_CHALLENGE, id=b64u(challenge_id), purpose=purpose.name.lower())
    if row is None:
        raise _no_challenge()
    challenge_row = rows.challenge_row(row)
    if challenge_row.expires_at <= now_ms():
        raise _no_challenge()
    return challenge_row, device_grant.OpenedChallenge(
        purpose=purpose,
        origin=caller.node.config.public_url,
        account=challenge_row.account,
        challenge_id=challenge_id,
        ed25519=challenge_row.ed25519,
        x25519=challenge_row.x25519,
        secret=challenge_row.secret,
    )


async def store(
    tx: Tx,
    caller: Caller,
    account_id: str,
    *,
    ed25519: bytes,
    x25519: bytes,
    name: str,
    registration: bytes,
    caps: Iterable[str],
) -> DeviceKeyRow:
    """Register a key. `registration`: the statement of registration that the key has signed. `caps`: the
    rights that the key has without a session. Raises SignatureInvalid or DeviceKeyExists."""
    verify_registration(caller.node.config.public_url, account_id, ed25519, registration)
    now = now_ms()
    key = DeviceKeyRow(
        id=key_id(ed25519),
        account_id=account_id,
        ed25519=ed25519,
        x25519=x25519,
        name=name,
        registration=registration,
        caps=" ".join(sorted(caps)),
        created_at=now,
        last_used_at=now,
        revoked_at=None,
    )
    try:
        await tx.run(rows.INSERT, **dataclasses.asdict(key))
    except UniqueViolation:
        raise DeviceKeyExists(
            "this device key is registered already, or was revoked; make a new one"
        ) from None
    await audit.record(tx, account_id, "device_key.register", key.id, name=key.name, address=caller.address)
    return key


async def _store_key(
    tx: Tx,
    caller: Caller,
    account_id: str,
    challenge_row: ChallengeRow,
    proof: DeviceKeyProof,
    caps: Iterable[str],
) -> DeviceKeyRow:
    return await store(
        tx,
        caller,
        account_id,
        ed25519=challenge_row.ed25519,
        x25519=challenge_row.x25519,
        name=challenge_row.name,
        registration=decode_bytes(proof.registration, SIGNATURE_BYTES, "/registration"),
        caps=caps,
    )


async def _find_account_and_key(
    tx: Tx, challenge_row: ChallengeRow
) -> tuple[AccountRow | None, DeviceKeyRow | None]:
    """Find the account and the key of a challenge. Returns (account with the handle, key if it belongs to
    that account). Raises Unauthorized for a revoked key, and Forbidden for a suspended account."""
    handle = challenge_row.account
    account_row = await tx.one(accounts.BY_HANDLE, handle=handle)
    account = accounts.to_row(account_row) if account_row else None
    if account is None and await tx.value(accounts.HANDLE_OWNER, handle=handle):
        raise Forbidden(f"the account {handle} is suspended; ask the operator of this node")
    key_row = await tx.one(rows.ONE, id=key_id(challenge_row.ed25519))
    key = rows.to_row(key_row) if key_row else None
    if key is not None and key.revoked_at is not None:
        raise Unauthorized("this device key was revoked; make a new one: svc login --new-key")
    if key is not None and (account is None or key.account_id != account.id):
        raise DeviceKeyExists("this device key belongs to another account; sign in with that one's handle")
    return account, key


def _future_account(challenge_id: bytes) -> str:
    """The id of the account that will be created for a new key. It is derived from the challenge, so that the
    registration statement, which the key signs before the account exists, can contain it."""
    return str(uuid.UUID(bytes=challenge_id, version=4))


def _require_allowed(caller: Caller) -> None:
    if not caller.node.config.device_key_sign_in:
        raise Forbidden("this node does not sign people in by device key; run: svc login")


def _require_sign_up(caller: Caller) -> None:
    if not caller.node.config.device_key_sign_up:
        raise SignUpClosed(f"this node does not offer sign-up by device key; {account_rules.ASK}")


def decode_bytes(text: str, size: int, pointer: str) -> bytes:
    """Decode the `size` bytes of a base64url text. If the text is anything else, raises Invalid for the field
    `pointer`."""
    try:
        return unb64u(text, size)
    except Invalid as error:
        raise Invalid(f"{pointer[1:]}: {error.detail}", pointer=pointer) from None


def _no_challenge() -> Gone:
    return Gone("this challenge was answered already, has expired, or was made for someone else; ask again")


def _no_account(handle: str) -> Invalid:
    return Invalid(
        f"there is no account {handle} that a pairing code could open; check the handle, or claim it without "
        "a code",
        pointer="/pair",
    )


def _handle_taken(handle: str) -> HandleTaken:
    return HandleTaken(
        f"the handle {handle} is taken and this key is not one of its keys; on a signed-in device run: "
        f"svc auth device add, then here: svc login --device-key --handle {handle} --pair CODE"
    )
