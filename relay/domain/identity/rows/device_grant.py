"""SQL statements on device codes, which terminals use to sign in through a browser."""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import bindparam, delete, insert, select, update

from relay.db.engine.database import Row
from relay.db.schema.account import device_code


@dataclass(slots=True, frozen=True)
class DeviceCodeRow:
    """A device code, which a terminal uses to sign in through a browser. `state`: pending, approved or
    denied. `interval` is in seconds, times are in milliseconds."""

    hash: bytes
    user_code: str
    x25519: bytes
    ed25519: bytes
    label: str
    state: str
    sealed: bytes | None
    interval: int
    polled_at: int | None
    expires_at: int


COLUMNS = (
    device_code.c.hash,
    device_code.c.user_code,
    device_code.c.x25519,
    device_code.c.ed25519,
    device_code.c.label,
    device_code.c.state,
    device_code.c.sealed,
    device_code.c.interval,
    device_code.c.polled_at,
    device_code.c.expires_at,
)
BY_USER_CODE = select(*COLUMNS).where(device_code.c.user_code == bindparam("user_code"))
BY_HASH = select(*COLUMNS).where(device_code.c.hash == bindparam("hash"))
INSERT = insert(device_code)
DECIDE = (
    update(device_code)
    .where(
        device_code.c.user_code == bindparam("code"),
        device_code.c.state == "pending",
        device_code.c.expires_at > bindparam("now"),
    )
    .values(state=bindparam("decision"), sealed=bindparam("box"))
)
POLLED = (
    update(device_code)
    .where(device_code.c.hash == bindparam("code_hash"))
    .values(polled_at=bindparam("now"), interval=bindparam("seconds"))
)
# A claim takes the row away, so that one code gives one session.
CLAIM = delete(device_code).where(device_code.c.hash == bindparam("hash"))
SWEEP = delete(device_code).where(device_code.c.expires_at < bindparam("now"))


def to_row(values: Row) -> DeviceCodeRow:
    return DeviceCodeRow(*values)
