"""Rules of pairing by QR code (docs/design/005).

1. The signed-in device draws a code, and the new device scans it.
2. The signed-in device opens the commitment in its code.
3. The new device confirms the digits that both devices show, by signing its registration.
4. The signed-in device confirms the digits too; this request registers the key.

So the right to add a device is checked in the request that uses it.
"""

from __future__ import annotations

import secrets
from typing import NoReturn

from localstore.core.encoding import b64u
from localstore.core.errors import Conflict, Forbidden, Invalid, NotFound, Unauthorized
from localstore.core.identity import pairing as protocol
from localstore.core.identity.keys import (
    KEY_BYTES,
    SIGNATURE_BYTES,
    check_ed25519,
    check_x25519,
    key_id,
    transport_of,
    verify_registration,
)
from localstore.core.identity.pairing import PairingText, Transcript
from localstore.core.model import limits
from localstore.core.model.auth import DeviceKeyExists
from localstore.core.model.device import (
    Device,
    NewDevice,
    OutOfOrder,
    Pairing,
    PairingComplete,
    PairingCreate,
    PairingEnded,
    PairingProcess,
    PairingStatus,
    PairingStep,
    ScannedBy,
)
from relay.base.clock import now_ms, rfc3339
from relay.caller import Caller
from relay.capacity.limiter import Attempts
from relay.db.engine.database import Tx
from relay.db.identity import device_key as device_keys
from relay.domain.device import device
from relay.domain.device.rows import pairing as rows
from relay.domain.device.rows.pairing import PairingRow, pairing_row
from relay.domain.identity import audit, device_key
from relay.domain.identity.rows import account as accounts

_CREATED = Attempts("pairing_qr.account", 20, 600, "QR codes that an account makes")
_WRONG = Attempts("pairing_qr.wrong", 30, 600, "wrong QR codes of a network; a code has 128 random bits")


async def generate(caller: Caller, user_id: str, body: PairingCreate) -> Pairing:
    """Make a QR code for adding another device to the caller's account"""
    me, now = caller.me, now_ms()
    caller.require_me(user_id)
    if me.handle is None:
        raise Forbidden("choose a handle first; the new device signs in by it")
    _require_whole(caller)
    _CREATED.count(caller.node.limiter, me.account_id)
    opening = None if body.commitment else secrets.token_bytes(protocol.OPENING_BYTES)
    if opening is None:
        commitment = device_key.decode_bytes(body.commitment or "", protocol.COMMITMENT_BYTES, "/commitment")
    else:
        commitment = protocol.commit(opening)
    text = PairingText(
        origin=caller.node.config.public_url,
        account=me.account_id,
        secret=secrets.token_bytes(protocol.SECRET_BYTES),
        commitment=commitment,
    )
    expires_at = now + limits.PAIRING_CODE * 1000
    name = device_key.check_label(body.name)
    async with caller.write() as tx:
        if await tx.value(rows.COUNT_OPEN, of_account=me.account_id, now=now) >= limits.OPEN_PAIRINGS:
            raise Conflict(
                f"{limits.OPEN_PAIRINGS} pairing codes of yours are open, and no account has more; "
                "use one, or wait ten minutes"
            )
        await tx.run(
            rows.INSERT,
            id=text.pairing_id,
            account_id=me.account_id,
            name=name,
            commitment=commitment,
            opening=opening,
            ed25519=None,
            x25519=None,
            nonce=None,
            registration=None,
            ended_at=None,
            refused=False,
            created_at=now,
            expires_at=expires_at,
        )
        await audit.record(tx, me.account_id, "pairing.create", text.pairing_id, address=caller.address)
    return Pairing(pairing_id=text.pairing_id, qr=str(text), expires_at=rfc3339(expires_at))


async def process(caller: Caller, user_id: str, body: PairingProcess) -> PairingStep:
    """Take the next step of a pairing, after its code was drawn. Returns the state of the pairing.

    The new device, which is not signed in, sends the code that it scanned and describes itself. The device
    that drew the code sends the opening of its commitment.
    """
    if caller.principal is not None:
        caller.require_me(user_id)
    text = _read_code(caller, user_id, body.qr)
    async with caller.read() as tx:
        pairing = await _find(tx, caller, user_id, text.pairing_id)
        account = await tx.one(accounts.BY_ID, id=user_id)
    if text.commitment != pairing.commitment:
        _refuse(caller)
    _require_running(pairing)
    if body.device is not None:
        _require_device_sign_in(caller)
        pairing = await _scan(caller, pairing, body.device)
    elif caller.principal is None:
        raise Invalid("say which device scanned the code", pointer="/device")
    if body.opening is not None:
        if caller.principal is None:
            raise Unauthorized("sign in first; only the account opens its pairing: svc login")
        pairing = await _open(caller, pairing, text, body.opening)
    return _to_step(text, pairing, accounts.to_row(account).handle if account else None)


async def complete(caller: Caller, user_id: str, body: PairingComplete) -> Device:
    """Confirm the digits, or refuse them; the account's confirmation registers the device

    The new device confirms first, by signing its registration. Until the account has confirmed too, and after
    a refusal, the answer is 202 with the device as not paired. The account may refuse before a device has
    scanned the code; then `id` and `public_key` of the answer are empty.
    """
    if caller.principal is not None:
        caller.require_me(user_id)
    async with caller.read() as tx:
        pairing = await _find(tx, caller, user_id, body.pairing_id)
    _require_unused(pairing)
    if not body.sas_confirmed and caller.principal is not None:
        return await _end_refused(caller, pairing)
    if pairing.ed25519 is None or pairing.x25519 is None:
        raise OutOfOrder("no device has scanned this code yet; scan it first")
    if not body.sas_confirmed:
        return await _end_refused(caller, pairing)
    if pairing.opening is None:
        raise OutOfOrder("the digits are not known yet; the device that drew the code opens it first")
    statement = None
    if body.signature or caller.principal is None:
        statement = device_key.decode_bytes(body.signature, SIGNATURE_BYTES, "/signature")
        verify_registration(caller.node.config.public_url, pairing.account_id, pairing.ed25519, statement)
    async with caller.write(_lock(pairing.id)) as tx:
        locked = await _find_unused(tx, pairing.id)
        if statement is not None:
            await tx.run(rows.CONFIRM, of_pairing=pairing.id, signed=statement)
        if caller.principal is None:
            return _to_unpaired_device(pairing.ed25519, pairing.name)
        _require_whole(caller)
        registration = statement or locked.registration
        if registration is None:
            raise OutOfOrder("the new device has not confirmed the digits yet; confirm them there first")
        key = await device_key.store(
            tx,
            caller,
            pairing.account_id,
            ed25519=pairing.ed25519,
            x25519=pairing.x25519,
            name=pairing.name,
            registration=registration,
            caps=device_key.lasting_caps(caller.me),
        )
        await tx.run(rows.END, of_pairing=pairing.id, now=now_ms(), was_refused=False)
        return device.to_wire(key)


def _read_code(caller: Caller, user_id: str, qr: str) -> PairingText:
    """Read a pairing code of the account `user_id`. Raises Invalid if the text is not a pairing code, but
    Unauthorized if the caller has no session. A code of another account is refused like a wrong one, and
    counted."""
    try:
        text = protocol.parse(qr)
    except Invalid:
        if caller.principal is None:
            _refuse(caller)
        raise
    if text.account != user_id:
        _refuse(caller)
    return text


async def _find(tx: Tx, caller: Caller, user_id: str, pairing_id: str) -> PairingRow:
    """Find the pairing with this id. If the account `user_id` has no such pairing, it is refused like a wrong
    code, and counted."""
    row = await tx.one(rows.ONE, of_pairing=pairing_id)
    pairing = pairing_row(row) if row else None
    if pairing is None or pairing.account_id != user_id:
        _refuse(caller)
    return pairing


async def _find_unused(tx: Tx, pairing_id: str) -> PairingRow:
    """Read the pairing in the transaction that locks it. Raises PairingEnded if the pairing is over."""
    row = await tx.one(rows.ONE, of_pairing=pairing_id)
    if row is None:
        raise _too_old()
    pairing = pairing_row(row)
    _require_unused(pairing)
    return pairing


def _refuse(caller: Caller) -> NoReturn:
    """Refuse a wrong pairing code, and count it. Raises Unauthorized if the caller has no session, else
    NotFound. After too many wrong codes from one network it raises RateLimited."""
    _WRONG.count(caller.node.limiter, caller.network)
    if caller.principal is None:
        raise Unauthorized("sign in first, or show a pairing code of this account: svc login --qr TEXT")
    raise NotFound


def _require_running(pairing: PairingRow) -> None:
    if pairing.refused:
        raise PairingEnded("this pairing was refused by one of its ends; start again: svc auth device pair")
    if pairing.expires_at <= now_ms():
        raise _too_old()


def _require_unused(pairing: PairingRow) -> None:
    _require_running(pairing)
    if pairing.ended_at is not None:
        raise PairingEnded("this pairing code was used; start again: svc auth device pair")


def _too_old() -> PairingEnded:
    return PairingEnded("this pairing code is older than ten minutes; start again: svc auth device pair")


def _require_whole(caller: Caller) -> None:
    """Raise Forbidden if the caller's token is narrowed to fewer rights. Such a token may not add a device,
    because the device would stay permanently."""
    if caller.me.narrowed:
        raise Forbidden("a device joins for good, and this token has limits; run: svc login, then try again")


def _require_device_sign_in(caller: Caller) -> None:
    if caller.principal is None and not caller.node.config.device_key_sign_in:
        raise Forbidden("this node does not sign people in by device key; run: svc login")


async def _scan(caller: Caller, pairing: PairingRow, scanned: NewDevice) -> PairingRow:
    """Record the device that scanned the code. Scanning again with the same device changes nothing. Raises
    PairingEnded if another device has scanned it."""
    ed25519 = device_key.decode_bytes(scanned.public_key, KEY_BYTES, "/device/public_key")
    check_ed25519(ed25519)
    if scanned.x25519 is None:
        x25519 = transport_of(ed25519)
    else:
        x25519 = device_key.decode_bytes(scanned.x25519, KEY_BYTES, "/device/x25519")
        check_x25519(x25519)
    if scanned.nonce is None:
        nonce = None
    else:
        nonce = device_key.decode_bytes(scanned.nonce, protocol.NONCE_BYTES, "/device/nonce")
    if _was_scanned_by(pairing, ed25519, x25519, nonce):
        return pairing
    name = pairing.name or device_key.check_label(scanned.name)
    async with caller.write(_lock(pairing.id), effect=False) as tx:
        if await tx.one(device_keys.ONE, id=key_id(ed25519)) is not None:
            raise DeviceKeyExists("this device key is registered already, or was revoked; make a new one")
        pairing = await _find_unused(tx, pairing.id)
        if _was_scanned_by(pairing, ed25519, x25519, nonce):
            return pairing
        await tx.run(
            rows.SCAN,
            of_pairing=pairing.id,
            new_ed25519=ed25519,
            new_x25519=x25519,
            new_nonce=nonce or secrets.token_bytes(protocol.NONCE_BYTES),
            new_name=name,
        )
        await audit.record(
            tx, pairing.account_id, "pairing.scan", key_id(ed25519), name=name, address=caller.address
        )
        return await _find_unused(tx, pairing.id)


def _was_scanned_by(pairing: PairingRow, ed25519: bytes, x25519: bytes, nonce: bytes | None) -> bool:
    """Whether this device has scanned the code already. Raises PairingEnded if another device has scanned
    it."""
    if pairing.ed25519 is None:
        return False
    same_keys = (pairing.ed25519, pairing.x25519) == (ed25519, x25519)
    if not same_keys or nonce not in (None, pairing.nonce):
        raise PairingEnded("another device used this pairing code; start again: svc auth device pair")
    return True


async def _open(caller: Caller, pairing: PairingRow, text: PairingText, opening: str) -> PairingRow:
    """Record the opening of the commitment. Raises OutOfOrder if no device has scanned the code yet, Invalid
    if the opening does not match the commitment."""
    revealed = device_key.decode_bytes(opening, protocol.OPENING_BYTES, "/opening")
    if pairing.ed25519 is None:
        raise OutOfOrder("no device has scanned this code yet; scan it before the commitment is opened")
    if protocol.commit(revealed) != text.commitment:
        raise Invalid("this opening does not belong to the commitment in the code", pointer="/opening")
    async with caller.write(_lock(pairing.id), effect=False) as tx:
        await tx.run(rows.OPEN, of_pairing=pairing.id, revealed=revealed)
        return await _find_unused(tx, pairing.id)


async def _end_refused(caller: Caller, pairing: PairingRow) -> Device:
    async with caller.write(_lock(pairing.id)) as tx:
        await _find_unused(tx, pairing.id)  # one that has added its device meanwhile is not refused any more
        await tx.run(rows.END, of_pairing=pairing.id, now=now_ms(), was_refused=True)
        refused = key_id(pairing.ed25519) if pairing.ed25519 is not None else pairing.id
        await audit.record(tx, pairing.account_id, "pairing.refuse", refused, address=caller.address)
    if pairing.ed25519 is None:
        return Device(id="", name=pairing.name, public_key="", paired_at=None, last_seen_at=None)
    return _to_unpaired_device(pairing.ed25519, pairing.name)


def _to_step(text: PairingText, pairing: PairingRow, handle: str | None) -> PairingStep:
    scanned_by, sas = None, None
    if pairing.ed25519 is not None and pairing.x25519 is not None and pairing.nonce is not None:
        scanned_by = ScannedBy(
            id=key_id(pairing.ed25519),
            name=pairing.name,
            public_key=b64u(pairing.ed25519),
            x25519=b64u(pairing.x25519),
            nonce=b64u(pairing.nonce),
        )
        if pairing.opening is not None:
            transcript = Transcript(text, pairing.opening, pairing.ed25519, pairing.x25519, pairing.nonce)
            sas = transcript.digits()
    return PairingStep(
        pairing_id=pairing.id,
        sas=sas,
        status=_to_status(pairing),
        expires_at=rfc3339(pairing.expires_at),
        handle=handle,
        device=scanned_by,
        opening=b64u(pairing.opening) if sas is not None and pairing.opening is not None else None,
    )


def _to_status(pairing: PairingRow) -> PairingStatus:
    if pairing.ended_at is not None:
        return "done"
    if pairing.ed25519 is None:
        return "open"
    if pairing.opening is None:
        return "scanned"
    return "opened" if pairing.registration is None else "confirmed"


def _to_unpaired_device(ed25519: bytes, name: str) -> Device:
    """The device of a pairing, before it belongs to the account."""
    return Device(id=key_id(ed25519), name=name, public_key=b64u(ed25519), paired_at=None, last_seen_at=None)


def _lock(pairing_id: str) -> str:
    return f"pairing {pairing_id}"
