"""Devices of an account, and pairing of another device by a QR code (docs/design/005).

Every device has one device key; a `Device` shows that key."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

from localstore.core.endpoint import Endpoint
from localstore.core.errors import Conflict, Gone
from localstore.core.identity.pairing import CODE_CHARS
from localstore.core.model.base import Model, Page, PageQuery, Sent
from localstore.core.model.limits import LABEL_CHARS

PairingStatus = Literal["open", "scanned", "opened", "confirmed", "done"]
Key = Annotated[str, msgspec.Meta(min_length=43, max_length=43)]
Label = Annotated[str, msgspec.Meta(max_length=LABEL_CHARS)]


class OutOfOrder(Conflict):
    """A step of a pairing came before an earlier step was done."""

    code = "out_of_order"


class PairingEnded(Gone):
    """The pairing code is used, refused or older than ten minutes."""

    code = "pairing_ended"


class Device(Model, frozen=True):
    """A device of an account. `id`: the id of its device key. `paired_at`: None until both devices have
    confirmed the pairing."""

    id: str
    name: str
    public_key: str
    paired_at: str | None
    last_seen_at: str | None


class PairingCreate(Sent, frozen=True):
    """A request to begin a pairing. `name`: name of the new device; by default that device chooses its name.
    `commitment`: the commitment to a number (the opening) that the caller reveals later. Without a
    commitment the relay draws the number; then the digits do not protect against a dishonest relay."""

    name: Label = ""
    commitment: Key | None = None


class Pairing(Model, frozen=True):
    """A pairing that has begun and waits for the new device. `qr`: the text of the QR code,
    `svc-pair:1:…`."""

    pairing_id: str
    qr: str
    expires_at: str


class NewDevice(Sent, frozen=True):
    """The device that scanned the code. `public_key`: its Ed25519 key. `x25519`: its transport key, by
    default derived from `public_key`. `nonce`: 32 random bytes that the device drew; by default the relay
    draws them."""

    public_key: Key
    name: Label = ""
    x25519: Key | None = None
    nonce: Key | None = None


class PairingProcess(Sent, frozen=True):
    """A step of a pairing. The answer is always the state of the pairing. The device that scanned the code
    sends `device`. Then the device that drew the code sends `opening`. A step with neither only asks for
    the state."""

    qr: Annotated[str, msgspec.Meta(max_length=CODE_CHARS)] = ""
    device: NewDevice | None = None
    opening: Key | None = None


class ScannedBy(Model, frozen=True):
    """The new device of a pairing, which has scanned the QR code, as the relay received it."""

    id: str
    name: str
    public_key: str
    x25519: str
    nonce: str


class PairingStep(Model, frozen=True):
    """The state of a pairing. `sas`: the six digits that people compare, None until the first device has
    revealed its secret number (`opening`). Each device computes the digits itself from `device` and
    `opening`."""

    pairing_id: str
    sas: str | None
    status: PairingStatus
    expires_at: str
    handle: str | None = None
    device: ScannedBy | None = None
    opening: str | None = None


class PairingComplete(Sent, frozen=True):
    """The last step of a pairing, sent by each of the two devices. `sas_confirmed`: whether the user saw the
    same digits on both; False ends the pairing. `signature`: the new device's signature of its own
    registration; the other device leaves it out."""

    pairing_id: Annotated[str, msgspec.Meta(max_length=64)] = ""
    sas_confirmed: bool = False
    signature: Annotated[str, msgspec.Meta(max_length=86)] = ""


DEVICES = "/api/v1/devices/{user_id}"
GENERATE = Endpoint("POST", f"{DEVICES}/pair/generate", body=PairingCreate, returns=Pairing, status=201)
PROCESS = Endpoint("POST", f"{DEVICES}/pair/process", body=PairingProcess, returns=PairingStep, keyed=False)
COMPLETE = Endpoint(
    "POST", f"{DEVICES}/pair/complete", body=PairingComplete, returns=Device, status=201, keyed=False
)
LIST = Endpoint("GET", DEVICES, query=PageQuery, returns=Page[Device])
REVOKE: Endpoint[None] = Endpoint("DELETE", f"{DEVICES}/{{device_id}}", status=204)
