"""Device keys (Ed25519, for signing) and transport keys (X25519, for encryption).

A key's id is its RFC 7638 thumbprint. Public keys of others must pass `check_ed25519` or `check_x25519`
before use. With a point of small order as the key, forged signatures would verify and strangers could
decrypt. A second encoding of a key would give it a second id."""

from __future__ import annotations

from functools import lru_cache

import msgspec
from nacl.bindings import (
    crypto_box_seal,
    crypto_box_seal_open,
    crypto_core_ed25519_is_valid_point,
    crypto_hash_sha256,
    crypto_scalarmult,
    crypto_scalarmult_base,
    crypto_sign,
    crypto_sign_ed25519_pk_to_curve25519,
    crypto_sign_open,
    crypto_sign_seed_keypair,
    randombytes,
)
from nacl.exceptions import BadSignatureError, CryptoError

from localstore.core.encoding import b64u, length_prefixed
from localstore.core.errors import Invalid, SignatureInvalid

KEY_BYTES = 32  # of every seed, secret and public key here
SIGNATURE_BYTES = 64
KEY_ID_CHARS = 43

_REGISTRATION_LABEL = b"svc-device-registration-v1\0"
_FIELD_PRIME = 2**255 - 19


@lru_cache(maxsize=1024)
def key_id(public: bytes) -> str:
    """RFC 7638 thumbprint of an Ed25519 public key (RFC 8037 JWK), 43 characters of base64url."""
    jwk = f'{{"crv":"Ed25519","kty":"OKP","x":"{b64u(public)}"}}'
    return b64u(crypto_hash_sha256(jwk.encode("ascii")))


def check_ed25519(public: bytes) -> None:
    """Raises Invalid unless `public` is the canonical encoding of a point of the prime-order subgroup."""
    if len(public) != KEY_BYTES or not crypto_core_ed25519_is_valid_point(public):
        raise Invalid("the Ed25519 key is not a valid point of full order; make a new device key")


def check_x25519(public: bytes) -> None:
    """Raises Invalid unless `public` is a canonical field element and no point of low order."""
    if len(public) != KEY_BYTES or int.from_bytes(public, "little") >= _FIELD_PRIME:
        raise Invalid("the X25519 key is not in canonical form; make a new transport key")
    try:
        crypto_scalarmult(b"\x40" * KEY_BYTES, public)  # any scalar: a low-order point gives zero, refused
    except CryptoError:
        raise Invalid("the X25519 key has low order; make a new transport key") from None


def transport_of(ed25519: bytes) -> bytes:
    """The X25519 key derived from an Ed25519 public key. It is used for a device that has no separate
    transport key. Raises Invalid for a key that `check_ed25519` refuses."""
    check_ed25519(ed25519)
    return crypto_sign_ed25519_pk_to_curve25519(ed25519)


def verify(public: bytes, message: bytes, signature: bytes) -> bool:
    """Whether `signature` is the Ed25519 signature of `message` under `public`. Never raises."""
    if len(public) != KEY_BYTES or len(signature) != SIGNATURE_BYTES:
        return False
    try:
        crypto_sign_open(signature + message, public)
    except (BadSignatureError, ValueError):
        return False
    return True


def seal_to(x25519_public: bytes, plaintext: bytes) -> bytes:
    """`plaintext` in an anonymous sealed box (x25519-xsalsa20poly1305), which is 48 bytes longer.

    Only the holder of the transport key can decrypt it; the box does not show who made it. Raises Invalid for
    a key that `check_x25519` refuses."""
    check_x25519(x25519_public)
    return crypto_box_seal(plaintext, x25519_public)


class DeviceKey(msgspec.Struct, frozen=True):
    """The Ed25519 key of one machine. `seed`: the whole secret, 32 bytes, never printed. Calls libsodium
    directly, because its Python classes would make each signature slower by half."""

    seed: bytes
    public: bytes
    _secret: bytes

    @classmethod
    def generate(cls, seed: bytes | None = None) -> DeviceKey:
        """The key with this seed (32 bytes), or a new random key. Raises Invalid if the seed has another
        length."""
        chosen = randombytes(KEY_BYTES) if seed is None else seed
        if len(chosen) != KEY_BYTES:
            raise Invalid(f"a device key seed has {KEY_BYTES} bytes, got {len(chosen)}")
        return cls(chosen, *crypto_sign_seed_keypair(chosen))

    @property
    def id(self) -> str:
        return key_id(self.public)

    def sign(self, message: bytes) -> bytes:
        """The Ed25519 signature (RFC 8032) of the message, 64 bytes."""
        return crypto_sign(message, self._secret)[:SIGNATURE_BYTES]

    def __repr__(self) -> str:
        return f"DeviceKey({self.id})"


class TransportKey(msgspec.Struct, frozen=True):
    """The X25519 key with which a device decrypts secrets that were encrypted (sealed) for it. `secret`: 32
    bytes, never printed."""

    secret: bytes
    public: bytes

    @classmethod
    def generate(cls, secret: bytes | None = None) -> TransportKey:
        """The key with this secret (32 bytes), or a new random key. Raises Invalid if the secret has another
        length."""
        chosen = randombytes(KEY_BYTES) if secret is None else secret
        if len(chosen) != KEY_BYTES:
            raise Invalid(f"a transport key has {KEY_BYTES} bytes, got {len(chosen)}")
        return cls(chosen, crypto_scalarmult_base(chosen))

    def unseal(self, sealed: bytes) -> bytes:
        """The content of a box that `seal_to` made for this key. Raises Invalid for any other bytes."""
        try:
            return crypto_box_seal_open(sealed, self.public, self.secret)
        except (CryptoError, ValueError):
            raise Invalid("the sealed message was not made for this key") from None

    def __repr__(self) -> str:
        return f"TransportKey({b64u(self.public)})"


def registration_bytes(origin: str, account: str, public: bytes) -> bytes:
    """The bytes that a device signs to register its key for an account. Readers of seals can verify the
    signature of these bytes without asking the relay.

    `origin`: the relay's public URL without trailing slash; `account`: account id; `public`: Ed25519 key (32
    bytes)."""
    return _REGISTRATION_LABEL + length_prefixed(origin.encode("utf-8"), account.encode("utf-8"), public)


def sign_registration(key: DeviceKey, origin: str, account: str) -> bytes:
    """The signature of `key` for its own registration (`registration_bytes`), 64 bytes."""
    return key.sign(registration_bytes(origin, account, key.public))


def verify_registration(origin: str, account: str, public: bytes, signature: bytes) -> None:
    """Raises SignatureInvalid unless `public` signed its registration for this account and origin."""
    check_ed25519(public)
    if not verify(public, registration_bytes(origin, account, public), signature):
        raise SignatureInvalid(
            f"key {key_id(public)} did not sign its registration for {account} on {origin}"
        )
