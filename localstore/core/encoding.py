"""Encodings with exactly one form for each value: base64url without padding, lowercase hex, JCS (canonical
JSON), length prefixes; and BLAKE3 digests.

Decoders accept only that form, so that signed data has one encoding."""

from __future__ import annotations

import binascii
import struct
from typing import Any

import msgspec
from blake3 import blake3

from localstore.core.errors import Invalid

HEX_DIGITS = frozenset("0123456789abcdef")
DIGEST_SIZE = 32
_URL_SAFE = bytes.maketrans(b"+/", b"-_")
_STANDARD = bytes.maketrans(b"-_+/=", b"+/!!!")  # what belongs to neither alphabet is refused with the rest
# The last characters that leave no loose bit, by the length of the text modulo 4; no text has length 1.
_ENDS = (("",), (), tuple("AQgw"), tuple("AEIMQUYcgkosw048"))
_length = struct.Struct(">I").pack
_EXACT = 1 << 53  # integers below are the same in every JSON reader


def b64u(raw: bytes) -> str:
    """Base64url without padding (RFC 4648 §5)."""
    return binascii.b2a_base64(raw, newline=False).translate(_URL_SAFE).rstrip(b"=").decode("ascii")


def unb64u(text: str, size: int | None = None) -> bytes:
    """Inverse of `b64u`. `size`: how many bytes the result must have. Raises Invalid for padding, other
    characters, non-zero unused bits, or another size."""
    rest = len(text) % 4
    if not text.endswith(_ENDS[rest]):
        raise Invalid("not canonical base64url")
    try:
        standard = text.encode("ascii").translate(_STANDARD) + b"=" * (-rest % 4)
        raw = binascii.a2b_base64(standard, strict_mode=True)
    except ValueError:
        raise Invalid("not canonical base64url") from None
    if size is not None and len(raw) != size:
        raise Invalid(f"expected {size} bytes, got {len(raw)}")
    return raw


def digest(data: bytes | bytearray | memoryview) -> bytes:
    """The BLAKE3-256 digest of the data: 32 bytes."""
    return blake3(data).digest()


def hex_digest(data: bytes | bytearray | memoryview) -> str:
    """The BLAKE3-256 digest of the data: 64 lowercase hex digits."""
    return blake3(data).hexdigest()


def is_hex_digest(text: str) -> bool:
    return _digest_in(text) is not None


def unhex(text: str) -> bytes:
    """The 32 bytes that 64 lowercase hex digits stand for. Raises Invalid for any other text."""
    raw = _digest_in(text)
    if raw is None:
        raise Invalid("expected 64 lowercase hex digits")
    return raw


def _digest_in(text: str) -> bytes | None:
    try:
        raw = bytes.fromhex(text)
    except ValueError:
        return None
    return raw if len(raw) == DIGEST_SIZE and raw.hex() == text else None


def jcs(value: Any) -> bytes:
    """The value as canonical JSON (RFC 8785): dicts with ASCII keys, lists, strings, booleans, None, and
    integers within ±(2**53−1). Raises Invalid for other values, including floats."""
    _refuse_inexact(value)
    return _SORTED(value)


_SORTED = msgspec.json.Encoder(order="sorted").encode  # escapes as RFC 8785 does: a test compares every sign


def _refuse_inexact(value: Any) -> None:
    kind = type(value)
    if kind is str and value.isascii():
        return
    if kind is int and -_EXACT < value < _EXACT:
        return
    if isinstance(value, dict):
        _refuse_inexact_members(value)
    elif isinstance(value, (list, tuple)):
        for item in value:
            _refuse_inexact(item)
    elif isinstance(value, str):
        try:
            value.encode("utf-8")
        except UnicodeEncodeError:
            raise Invalid("signed text is not valid Unicode") from None
    elif isinstance(value, bool) or value is None:
        return
    elif not isinstance(value, int) or abs(value) >= _EXACT:
        raise Invalid("signed data holds exact integers only")


def _refuse_inexact_members(members: dict[Any, Any]) -> None:
    for key, item in members.items():
        if not isinstance(key, str) or not key.isascii():
            raise Invalid("signed data has ASCII keys only")
        if type(item) is not str or not item.isascii():  # most members need no call
            _refuse_inexact(item)


def length_prefixed(*parts: bytes) -> bytes:
    """The parts joined, each after its length as an unsigned 32-bit big-endian number, so that different
    lists of parts never give the same bytes."""
    return b"".join([_length(len(part)) + part for part in parts])
