"""Pairing codes, with which another device joins an account."""

from __future__ import annotations

import hashlib

from localstore.core.errors import Forbidden
from localstore.core.identity import device_grant
from localstore.core.model import limits
from localstore.core.model.auth import PairingCode
from relay.base.clock import now_ms, rfc3339
from relay.caller import Caller
from relay.capacity.limiter import Attempts
from relay.db.engine.database import Tx
from relay.db.identity import device_key as rows
from relay.domain.identity import audit
from relay.domain.identity.rows.account import AccountRow

_CREATED = Attempts("pairing.account", 10, 600, "pairing codes that an account makes (`svc auth device add`)")


async def create(caller: Caller) -> PairingCode:
    """A one-time code for adding another device to this account"""
    me, now = caller.me, now_ms()
    if me.handle is None:
        raise Forbidden("choose a handle first; a device joins by handle and code")
    if me.narrowed:
        raise Forbidden("a device joins for good, and this token has limits; run: svc login, then try again")
    _CREATED.count(caller.node.limiter, me.account_id)
    code, expires_at = device_grant.new_pairing_code(), now + limits.PAIRING_CODE * 1000
    answer = PairingCode(code=code, expires_at=rfc3339(expires_at))
    async with caller.write() as tx:
        await tx.run(rows.SWEEP_PAIRING, now=now)
        await tx.run(
            rows.INSERT_PAIRING,
            hash=_digest_of(code),
            account_id=me.account_id,
            expires_at=expires_at,
            used_at=None,
        )
        await audit.record(tx, me.account_id, "pairing_code.create", me.account_id, address=caller.address)
    return answer


async def use(tx: Tx, account: AccountRow, digest: bytes | None) -> bool:
    """Use up the pairing code with this digest. Returns whether it was valid and belongs to the account."""
    if digest is None:
        return False
    return bool(await tx.run(rows.USE_PAIRING, code_hash=digest, account=account.id, now=now_ms()))


def hash_of(code: str | None) -> bytes | None:
    """The digest under which a pairing code is stored; None for None. Raises Invalid if the text is not a
    pairing code."""
    return None if code is None else _digest_of(device_grant.normalise_pairing_code(code))


def _digest_of(code: str) -> bytes:
    return hashlib.sha256(code.encode("ascii")).digest()
