"""Pairing by QR code: the text of the code, and the six digits that two people compare.

Before the code is drawn, the signed-in device commits to a secret number, its opening; the code contains the
commitment. The new device answers with its keys and a nonce. Then the first device reveals the opening, and
both compute the digits from all of these values. A relay that swaps keys has to choose them before it knows
the opening, so it cannot choose keys that give the same digits: its single try succeeds once in a million.
"""

from __future__ import annotations

import hashlib
import uuid
from dataclasses import dataclass, field

from localstore.core.encoding import b64u, length_prefixed, unb64u
from localstore.core.errors import Invalid
from localstore.core.identity.request_signature import authority_of

PREFIX = "svc-pair:1:"
SECRET_BYTES = 16
OPENING_BYTES = 32
NONCE_BYTES = 32
COMMITMENT_BYTES = 32
CODE_CHARS = 400
DIGITS = 6

_ID_LABEL = b"svc-pair-id-v1\0"
_COMMIT_LABEL = b"svc-pair-commit-v1\0"
_DIGITS_LABEL = b"svc-pair-digits-v1\0"
_ID_BYTES = 16
_ACCOUNT_BYTES = 16


@dataclass(frozen=True, slots=True)
class PairingText:
    """The content of a pairing's QR code. `origin`: the public URL of the relay; `account`: id (UUID) of the
    account that the new device joins; `secret` (16 bytes): proves that its holder saw the code; `commitment`
    (32 bytes): hash of the secret number (opening) that the device which drew the code reveals later."""

    origin: str
    account: str
    secret: bytes = field(repr=False)
    commitment: bytes

    @property
    def pairing_id(self) -> str:
        """The public name of the pairing, 22 characters of base64url. It does not reveal the secret."""
        return b64u(hashlib.sha256(_ID_LABEL + self.secret).digest()[:_ID_BYTES])

    def __str__(self) -> str:
        payload = uuid.UUID(self.account).bytes + self.secret + self.commitment
        return f"{PREFIX}{b64u(payload)}:{self.origin}"


def parse(text: str) -> PairingText:
    """The content of a pairing code. Raises Invalid for any other text."""
    stripped = text.strip()
    payload, _, origin = stripped.removeprefix(PREFIX).partition(":")
    if not stripped.startswith(PREFIX) or len(stripped) > CODE_CHARS or not _is_origin(origin):
        raise Invalid(f"this is no pairing code; it begins with {PREFIX}", pointer="/qr")
    try:
        raw = unb64u(payload, _ACCOUNT_BYTES + SECRET_BYTES + COMMITMENT_BYTES)
    except Invalid:
        raise Invalid("the pairing code is incomplete or mistyped; copy all of it", pointer="/qr") from None
    after_account = raw[_ACCOUNT_BYTES:]
    return PairingText(
        origin=origin,
        account=str(uuid.UUID(bytes=raw[:_ACCOUNT_BYTES])),
        secret=after_account[:SECRET_BYTES],
        commitment=after_account[SECRET_BYTES:],
    )


def commit(opening: bytes) -> bytes:
    """The commitment to an opening (32 random bytes): the SHA-256 of a fixed prefix and the opening, 32
    bytes."""
    return hashlib.sha256(_COMMIT_LABEL + opening).digest()


@dataclass(frozen=True, slots=True)
class Transcript:
    """Everything that the six digits are computed from. `opening`: the number to which `text.commitment`
    commits; `ed25519`, `x25519`, `nonce`: keys and nonce of the new device, 32 bytes each."""

    text: PairingText
    opening: bytes
    ed25519: bytes
    x25519: bytes
    nonce: bytes

    def digits(self) -> str:
        """The six digits that both devices show. Raises Invalid if the opening does not belong to the
        commitment in the code."""
        if commit(self.opening) != self.text.commitment:
            raise Invalid("the opening does not match the commitment in the pairing code", pointer="/opening")
        covered = _DIGITS_LABEL + length_prefixed(
            self.text.origin.encode("ascii"),
            self.text.account.encode("ascii"),
            self.text.secret,
            self.text.commitment,
            self.opening,
            self.ed25519,
            self.x25519,
            self.nonce,
        )
        number = int.from_bytes(hashlib.sha256(covered).digest(), "big") % 10**DIGITS
        return f"{number:0{DIGITS}}"


def _is_origin(origin: str) -> bool:
    """Whether this is the origin of a server as a relay writes it: without user, path or query; it may
    include its default port."""
    scheme, _, host = origin.partition("://")
    try:
        authority = authority_of(origin)
    except Invalid:
        return False
    return host in (authority, f"{authority}:{443 if scheme == 'https' else 80}")
