"""Rules of API keys. The relay keeps the hash of a secret; the secret itself is shown once."""

from __future__ import annotations

import secrets
from hashlib import sha256

import msgspec

from localstore.core.encoding import b64u
from localstore.core.errors import Conflict, Invalid, NotFound
from localstore.core.model import limits
from localstore.core.model.api_key import (
    PREFIX,
    ApiKey,
    ApiKeyCheck,
    ApiKeyCreate,
    ApiKeyEnded,
    ApiKeyRotate,
    ApiKeySecret,
    ApiKeyVerdict,
)
from localstore.core.model.base import Page, PageQuery
from relay.base.clock import LAST_MS, now_ms, rfc3339, rfc3339_or_none, to_milliseconds
from relay.base.ids import new_id
from relay.caller import Caller
from relay.capacity.limiter import Attempts
from relay.db import paging
from relay.db.engine.database import Tx
from relay.domain.api_key.rows import api_key as rows
from relay.domain.api_key.rows.api_key import ApiKeyRow, api_key_row
from relay.domain.identity import audit

SECRET_BYTES = 32
SHOWN_CHARS = len(PREFIX) + 6  # of the secret, in lists: too few to guess the rest
USED_AGAIN = 10 * 60_000  # milliseconds; precision of `last_used_at`, so that a check rarely writes

# Read in place of a key that is not valid, so that the answer takes as long.
_DECOY = ("0" * 32, "", PREFIX, "read", 0, 0, None, None)
_NEW = Attempts("api_key.account", 60, 3600, "API keys that an account makes or rotates")


async def page(caller: Caller, user_id: str, query: PageQuery) -> Page[ApiKey]:
    """The caller's API keys, newest first; expired and revoked keys stay for 90 days"""
    account = caller.require_me(user_id)
    async with caller.read() as tx:
        return await paging.read_page(
            tx, rows.PAGE, query, lambda row: _to_wire(api_key_row(row)), of_account=account
        )


async def create(caller: Caller, user_id: str, body: ApiKeyCreate) -> ApiKeySecret:
    """Create an API key; its secret is shown only once"""
    account, now = caller.require_me(user_id), now_ms()
    expires_at = None if body.expires_at is None else to_milliseconds(body.expires_at)
    if expires_at is not None and expires_at <= now:
        raise Invalid("a key ends in the future, or never", pointer="/expires_at")
    if expires_at is not None and expires_at > LAST_MS:
        raise Invalid("a key ends before the year 10000 of UTC, or never", pointer="/expires_at")
    _NEW.count(caller.node.limiter, account)
    secret, key_id = _new_secret(), new_id()
    async with caller.write() as tx:
        await tx.run(rows.FORGET, of_account=account, before=now - limits.API_KEY_KEPT * 1000)
        if await tx.value(rows.COUNT, of_account=account, now=now) >= limits.API_KEYS:
            raise Conflict(
                f"you have {limits.API_KEYS} API keys, and no account has more; revoke one: svc auth key list"
            )
        await tx.run(
            rows.INSERT,
            id=key_id,
            account_id=account,
            name=body.name,
            hash=_hash_secret(secret),
            previous_hash=None,
            previous_until=None,
            prefix=secret[:SHOWN_CHARS],
            scopes=" ".join(dict.fromkeys(body.scopes)),
            created_at=now,
            last_used_at=None,
            expires_at=expires_at,
            revoked_at=None,
        )
        await audit.record(tx, account, "api_key.create", key_id, name=body.name, address=caller.address)
        return await _read_with_secret(tx, account, key_id, secret)


async def get(caller: Caller, user_id: str, key_id: str) -> ApiKey:
    """One API key of the caller"""
    account = caller.require_me(user_id)
    async with caller.read() as tx:
        return _to_wire(await _find(tx, account, key_id))


async def revoke(caller: Caller, user_id: str, key_id: str) -> None:
    """Revoke an API key permanently; a repeated request changes nothing"""
    account = caller.require_me(user_id)
    async with caller.write() as tx:
        key = await _find(tx, account, key_id)
        if key.revoked_at is None:
            await tx.run(rows.REVOKE, of_key=key_id, of_account=account, now=now_ms())
            await audit.record(tx, account, "api_key.revoke", key_id, address=caller.address)


async def rotate(caller: Caller, user_id: str, key_id: str, body: ApiKeyRotate) -> ApiKeySecret:
    """Give an API key a new secret; the previous secret stays valid for a while

    `overlap_seconds` says how long.
    """
    account, now, secret = caller.require_me(user_id), now_ms(), _new_secret()
    _NEW.count(caller.node.limiter, account)
    async with caller.write() as tx:
        key = await _find(tx, account, key_id)
        if key.revoked_at is not None:
            raise ApiKeyEnded(f"the API key {key.name} is revoked; make another: svc auth key create NAME")
        if key.expires_at is not None and key.expires_at <= now:
            raise ApiKeyEnded(f"the API key {key.name} has expired; make another: svc auth key create NAME")
        await tx.run(
            rows.ROTATE,
            of_key=key_id,
            of_account=account,
            until=now + body.overlap_seconds * 1000,
            new_hash=_hash_secret(secret),
            new_prefix=secret[:SHOWN_CHARS],
        )
        await audit.record(tx, account, "api_key.rotate", key_id, address=caller.address)
        return await _read_with_secret(tx, account, key_id, secret)


async def validate(caller: Caller, body: ApiKeyCheck) -> ApiKeyVerdict:
    """Check the secret of one of the caller's API keys: whether it is valid, and its scopes"""
    account, now = caller.me.account_id, now_ms()
    async with caller.read() as tx:
        row = await tx.one(rows.VALID, of_account=account, shown=_hash_secret(body.key), now=now)
    key = api_key_row(_DECOY if row is None else row)
    verdict = ApiKeyVerdict(
        valid=True,
        key_id=key.id,
        user_id=account,
        scopes=_to_wire(key).scopes,
        expires_at=rfc3339_or_none(key.expires_at),
    )
    if row is None:  # after the same work
        return ApiKeyVerdict(valid=False)
    if now - (key.last_used_at or 0) > USED_AGAIN:
        async with caller.node.db.write() as tx:
            await tx.run(rows.TOUCH, of_key=key.id, of_account=account, now=now)
    return verdict


async def _find(tx: Tx, account: str, key_id: str) -> ApiKeyRow:
    row = await tx.one(rows.ONE, of_key=key_id, of_account=account)
    if row is None:
        raise NotFound
    return api_key_row(row)


async def _read_with_secret(tx: Tx, account: str, key_id: str, secret: str) -> ApiKeySecret:
    key = _to_wire(await _find(tx, account, key_id))
    return ApiKeySecret(**msgspec.structs.asdict(key), secret=secret)


def _new_secret() -> str:
    return PREFIX + b64u(secrets.token_bytes(SECRET_BYTES))


def _hash_secret(secret: str) -> bytes:
    """The hash under which a secret is stored. A fast hash is enough, because the secret has 32 random
    bytes."""
    return sha256(secret.encode()).digest()


def _to_wire(key: ApiKeyRow) -> ApiKey:
    return ApiKey(
        id=key.id,
        name=key.name,
        prefix=key.prefix,
        scopes=key.scopes.split(),  # type: ignore[arg-type]  # the column holds nothing else
        created_at=rfc3339(key.created_at),
        last_used_at=rfc3339_or_none(key.last_used_at),
        expires_at=rfc3339_or_none(key.expires_at),
        revoked_at=rfc3339_or_none(key.revoked_at),
    )
