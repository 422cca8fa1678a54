"""SQL statements on pairings by QR code, and on the keys of active devices."""

from __future__ import annotations

from dataclasses import dataclass, field

from sqlalchemy import bindparam, func, insert, select, update

from relay.db.engine.database import Row
from relay.db.engine.keyset import Keyset
from relay.db.identity import device_key as device_keys
from relay.db.schema.account import device_key, pairing


@dataclass(slots=True, frozen=True)
class PairingRow:
    """A pairing. `name`: name of the new device. `ended_at`: time at which its key was registered, or at
    which one of the devices refused. Times are in milliseconds."""

    id: str
    account_id: str
    name: str
    commitment: bytes
    opening: bytes | None = field(repr=False)
    ed25519: bytes | None
    x25519: bytes | None
    nonce: bytes | None
    registration: bytes | None
    ended_at: int | None
    refused: bool
    expires_at: int


_COLUMNS = (
    pairing.c.id,
    pairing.c.account_id,
    pairing.c.name,
    pairing.c.commitment,
    pairing.c.opening,
    pairing.c.ed25519,
    pairing.c.x25519,
    pairing.c.nonce,
    pairing.c.registration,
    pairing.c.ended_at,
    pairing.c.refused,
    pairing.c.expires_at,
)
_ONE = pairing.c.id == bindparam("of_pairing")
ONE = select(*_COLUMNS).where(_ONE)
COUNT_OPEN = (
    select(func.count())
    .select_from(pairing)
    .where(
        pairing.c.account_id == bindparam("of_account"),
        pairing.c.ended_at.is_(None),
        pairing.c.expires_at > bindparam("now"),
    )
)
INSERT = insert(pairing)
# The first device that scans the code has it; each change is of a pairing that goes on.
SCAN = (
    update(pairing)
    .where(_ONE, pairing.c.ed25519.is_(None), pairing.c.ended_at.is_(None))
    .values(
        ed25519=bindparam("new_ed25519"),
        x25519=bindparam("new_x25519"),
        nonce=bindparam("new_nonce"),
        name=bindparam("new_name"),
    )
)
OPEN = update(pairing).where(_ONE, pairing.c.ended_at.is_(None)).values(opening=bindparam("revealed"))
CONFIRM = update(pairing).where(_ONE, pairing.c.ended_at.is_(None)).values(registration=bindparam("signed"))
END = (
    update(pairing)
    .where(_ONE, pairing.c.ended_at.is_(None))
    .values(ended_at=bindparam("now"), refused=bindparam("was_refused"))
)
DEVICES = Keyset(
    select(*device_keys.COLUMNS).where(
        device_key.c.account_id == bindparam("account"), device_key.c.revoked_at.is_(None)
    ),
    "-created_at",
    "id",
)


def pairing_row(columns: Row) -> PairingRow:
    return PairingRow(*columns)
