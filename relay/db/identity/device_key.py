"""SQL statements on device keys, on the challenges by which they are proven, and on pairing codes."""

from __future__ import annotations

from dataclasses import dataclass, field

from sqlalchemy import bindparam, delete, insert, select, update

from relay.db.engine.database import Row
from relay.db.engine.keyset import Keyset
from relay.db.schema.account import account, challenge, device_key, pairing_code


@dataclass(slots=True, frozen=True)
class DeviceKeyRow:
    """A device key. `id`: the thumbprint. `registration`: the key's signature of its own registration with
    this account. `caps`: the rights that the key has without a session, as words; "" for no rights. Times are
    in milliseconds."""

    id: str
    account_id: str
    ed25519: bytes
    x25519: bytes
    name: str
    registration: bytes
    caps: str
    created_at: int
    last_used_at: int | None
    revoked_at: int | None


@dataclass(slots=True, frozen=True)
class ChallengeRow:
    """A challenge that a device key has to sign. `account`: the account id if the key is being registered, or
    the handle if the challenge is for a sign-in."""

    account: str
    session_id: str | None
    ed25519: bytes
    x25519: bytes
    name: str
    secret: bytes = field(repr=False)
    expires_at: int


COLUMNS = (
    device_key.c.id,
    device_key.c.account_id,
    device_key.c.ed25519,
    device_key.c.x25519,
    device_key.c.name,
    device_key.c.registration,
    device_key.c.caps,
    device_key.c.created_at,
    device_key.c.last_used_at,
    device_key.c.revoked_at,
)
ONE = select(*COLUMNS).where(device_key.c.id == bindparam("id"))
PAGE = Keyset(select(*COLUMNS).where(device_key.c.account_id == bindparam("account")), "-created_at", "id")
# The key that signs a request on its own: its public half, rights, last use, and the account it stands for.
SELF = (
    select(
        device_key.c.ed25519,
        device_key.c.caps,
        device_key.c.last_used_at,
        account.c.id,
        account.c.kind,
        account.c.handle,
        account.c.phase,
    )
    .select_from(device_key.join(account, account.c.id == device_key.c.account_id))
    .where(
        device_key.c.id == bindparam("id"),
        device_key.c.revoked_at.is_(None),
        account.c.disabled_at.is_(None),
    )
)
INSERT = insert(device_key)
RENAME = (
    update(device_key)
    .where(device_key.c.id == bindparam("key_id"), device_key.c.account_id == bindparam("account"))
    .values(name=bindparam("new_name"))
)
TOUCH = (
    update(device_key).where(device_key.c.id == bindparam("key_id")).values(last_used_at=bindparam("used_at"))
)
REVOKE = (
    update(device_key)
    .where(
        device_key.c.id == bindparam("key_id"),
        device_key.c.account_id == bindparam("account"),
        device_key.c.revoked_at.is_(None),
    )
    .values(revoked_at=bindparam("now"))
)

INSERT_CHALLENGE = insert(challenge)
_CHALLENGE_COLUMNS = (
    challenge.c.account,
    challenge.c.session_id,
    challenge.c.ed25519,
    challenge.c.x25519,
    challenge.c.name,
    challenge.c.secret,
    challenge.c.expires_at,
)
_NAMED_CHALLENGE = (challenge.c.id == bindparam("id"), challenge.c.purpose == bindparam("purpose"))
CHALLENGE = select(*_CHALLENGE_COLUMNS).where(*_NAMED_CHALLENGE)
# Taking a challenge deletes it, whatever the check then says.
TAKE_CHALLENGE = delete(challenge).where(*_NAMED_CHALLENGE).returning(*_CHALLENGE_COLUMNS)
SWEEP_CHALLENGES = delete(challenge).where(challenge.c.expires_at < bindparam("now"))

INSERT_PAIRING = insert(pairing_code)
USE_PAIRING = (
    update(pairing_code)
    .where(
        pairing_code.c.hash == bindparam("code_hash"),
        pairing_code.c.account_id == bindparam("account"),
        pairing_code.c.used_at.is_(None),
        pairing_code.c.expires_at > bindparam("now"),
    )
    .values(used_at=bindparam("now"))
)
SWEEP_PAIRING = delete(pairing_code).where(pairing_code.c.expires_at < bindparam("now"))


def to_row(columns: Row) -> DeviceKeyRow:
    return DeviceKeyRow(*columns)


def challenge_row(columns: Row) -> ChallengeRow:
    return ChallengeRow(*columns)
