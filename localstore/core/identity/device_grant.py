"""Proof of a device key, and the way by which a signed-in browser gives a session to a terminal.

To prove its key, a device gets a challenge: a secret of the relay, encrypted for the device's transport key.
The device decrypts it and signs a transcript: the relay's origin, the account, both keys and the secret. So
the signature is valid nowhere else. The device authorization grant (RFC 8628) returns a session sealed to the
transport key. The encryption does not show who sent the session, so `open_grant` checks the origin and device
code in it."""

from __future__ import annotations

import base64
import hashlib
import hmac
import secrets
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Literal

import msgspec

from localstore.core.encoding import b64u, length_prefixed
from localstore.core.errors import Invalid, ServerMisbehaved, SignatureInvalid
from localstore.core.identity.keys import DeviceKey, TransportKey, seal_to, verify

CHALLENGE_BYTES = 32
CHALLENGE_ID_BYTES = 16
DEVICE_CODE_BYTES = 32
GRANT_TYPE = "urn:ietf:params:oauth:grant-type:device_code"
SEALED_ALG = "x25519-xsalsa20poly1305-sealedbox"

CODE_ALPHABET = "BCDFGHJKLMNPQRSTVWXZ"  # RFC 8628 §6.1: no vowels, nothing that looks like a digit
USER_CODE_CHARS = 8
PAIRING_CODE_CHARS = 12

_FINGERPRINT_LABEL = b"svc-cli-fpr-v1\0"
_FINGERPRINT_BYTES = 15


class Purpose(Enum):
    """What a proof of a device key is for. The signed bytes begin with the purpose, so that a proof for one
    purpose cannot be used for the other."""

    REGISTER = b"svc-device-key-v1\0"
    LOGIN = b"svc-device-login-v1\0"


@dataclass(frozen=True, slots=True)
class OpenedChallenge:
    """A challenge that the device has decrypted.

    `account`: the account id when a signed-in account registers a key (REGISTER), the handle when the key
    signs in (LOGIN). `challenge_id`: 16 bytes; `secret` and the keys: 32 each.
    """

    purpose: Purpose
    origin: str
    account: str
    challenge_id: bytes
    ed25519: bytes
    x25519: bytes
    secret: bytes

    def transcript(self) -> bytes:
        """The bytes that the device signs to prove its key."""
        return self.purpose.value + length_prefixed(
            self.origin.encode("utf-8"),
            self.account.encode("utf-8"),
            self.challenge_id,
            self.ed25519,
            self.x25519,
            self.secret,
        )

    def seal(self) -> bytes:
        """The challenge's secret, encrypted for the device's transport key. Raises Invalid for an unusable
        key."""
        return seal_to(self.x25519, self.secret)

    def prove(self, key: DeviceKey) -> bytes:
        """The device's signature of the bytes that `transcript` returns, 64 bytes."""
        return key.sign(self.transcript())

    def check(self, signature: bytes) -> None:
        """Raises SignatureInvalid unless `signature` is the device key's signature of the bytes that
        `transcript` returns."""
        if not verify(self.ed25519, self.transcript(), signature):
            raise SignatureInvalid("the proof does not match the challenge; ask for a new challenge")


def fingerprint(x25519: bytes, ed25519: bytes) -> str:
    """The text by which a person compares a device's keys between terminal and browser: 24 base32 letters in
    groups of four."""
    code = base64.b32encode(
        hashlib.sha256(_FINGERPRINT_LABEL + x25519 + ed25519).digest()[:_FINGERPRINT_BYTES]
    )
    return _group(code.decode("ascii"))


def new_user_code(random: Callable[[int], int] = secrets.randbelow) -> str:
    """A code for a person to type, such as `BCDF-GHJK`. `random(n)`: returns a number below n."""
    return _new_code(USER_CODE_CHARS, random)


def normalise_user_code(typed: str) -> str:
    """The code in the form of `new_user_code`, from text in any case, with or without dashes. Raises Invalid
    if it is no such code."""
    return _normalise(typed, USER_CODE_CHARS)


def new_pairing_code(random: Callable[[int], int] = secrets.randbelow) -> str:
    """A one-time code with which a second device joins an account, such as `BCDF-GHJK-LMNP` (52 bits)."""
    return _new_code(PAIRING_CODE_CHARS, random)


def normalise_pairing_code(typed: str) -> str:
    """The code in the form of `new_pairing_code`, from text in any case, with or without dashes. Raises
    Invalid if it is no such code."""
    return _normalise(typed, PAIRING_CODE_CHARS)


class Grant(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The answer to a terminal whose sign-in was approved in a browser, before it is encrypted for that
    terminal.

    `device_code_sha256`: digest of the device code to which the answer belongs (base64url); `token`:
    base64url text; `account`: account id; `expires_at`: Unix seconds; `parent_session`: the browser session
    in which the sign-in was approved; when it ends, the new session ends too."""

    v: Literal[1] = 1
    origin: str
    device_code_sha256: str
    token: str
    token_type: Literal["DeviceBound"] = "DeviceBound"  # noqa: S105 - a kind of token, not one
    account: str
    expires_at: int
    parent_session: str


def device_code_hash(device_code: bytes) -> str:
    """SHA-256 of a device code as base64url. The relay stores it instead of the code, and the grant contains
    it."""
    return b64u(hashlib.sha256(device_code).digest())


def seal_grant(grant: Grant, x25519: bytes) -> bytes:
    """The answer `grant`, encrypted for the terminal's transport key. Raises Invalid for an unusable key."""
    return seal_to(x25519, msgspec.json.encode(grant))


def open_grant(sealed: bytes, key: TransportKey, *, origin: str, device_code: bytes) -> Grant:
    """Decrypt the relay's answer to this terminal's sign-in, and check it.

    Raises ServerMisbehaved if the answer is not encrypted for `key`, cannot be read, or is for another origin
    or device code."""
    try:
        grant = msgspec.json.decode(key.unseal(sealed), type=Grant)
    except (Invalid, msgspec.DecodeError):
        raise ServerMisbehaved("the server's sign-in answer cannot be opened; run: svc login") from None
    if grant.origin != origin:
        raise ServerMisbehaved(
            f"the sign-in answer is for {grant.origin!r}, not for {origin}; run: svc login"
        )
    if not hmac.compare_digest(grant.device_code_sha256.encode(), device_code_hash(device_code).encode()):
        raise ServerMisbehaved("the sign-in answer belongs to another sign-in; run: svc login")
    return grant


def _new_code(chars: int, random: Callable[[int], int]) -> str:
    return _group("".join(CODE_ALPHABET[random(len(CODE_ALPHABET))] for _ in range(chars)))


def _normalise(typed: str, chars: int) -> str:
    letters = typed[: 4 * chars].strip().upper().replace("-", "").replace(" ", "")
    if len(letters) != chars or not set(letters) <= set(CODE_ALPHABET):
        raise Invalid(
            f"a code has {chars} letters of {CODE_ALPHABET}, such as {_group(CODE_ALPHABET[:chars])}"
        )
    return _group(letters)


def _group(text: str) -> str:
    return "-".join(text[at : at + 4] for at in range(0, len(text), 4))
