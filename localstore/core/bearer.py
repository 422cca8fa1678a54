"""How tokens are written: base64url text, the Authorization header, and script tokens for SVC_TOKEN."""

from __future__ import annotations

from localstore.core.encoding import b64u, unb64u
from localstore.core.errors import Invalid, Unauthorized
from localstore.core.keys import KEY_BYTES, DeviceKey
from localstore.core.limits import TOKEN_RAW_MAX

SCRIPT_TOKEN_PREFIX = "svct_"  # noqa: S105 - a prefix, not a secret

_TEXT_MAX = (TOKEN_RAW_MAX * 4 + 2) // 3


def to_text(raw: bytes) -> str:
    """The base64url text of a token."""
    return b64u(raw)


def from_text(text: str) -> bytes:
    """Inverse of `to_text`; Unauthorized for text that is empty, too long or not canonical."""
    if not 0 < len(text) <= _TEXT_MAX:
        raise Unauthorized(f"a token has 1 to {TOKEN_RAW_MAX} bytes; run: svc login", reason="token")
    try:
        return unb64u(text)
    except Invalid as error:
        raise Unauthorized(f"the token is {error.detail}; run: svc login", reason="token") from None


def authorization(raw: bytes) -> str:
    """The value of the Authorization header that carries a token."""
    return f"Bearer {to_text(raw)}"


def text_in_authorization(value: str) -> str:
    """The token's text, for `from_text`, in an Authorization header; Unauthorized for another scheme."""
    scheme, _, text = value.partition(" ")
    if scheme.lower() != "bearer":
        raise Unauthorized("the Authorization header must read: Bearer TOKEN")
    return text


def format_script_token(raw: bytes, binding: DeviceKey) -> str:
    """What a person copies into SVC_TOKEN: `svct_<token>.<binding seed>`."""
    return f"{SCRIPT_TOKEN_PREFIX}{to_text(raw)}.{b64u(binding.seed)}"


def parse_script_token(text: str) -> tuple[bytes, DeviceKey]:
    """The token and its binding key from SVC_TOKEN; Unauthorized, without the text, for anything else."""
    token, dot, seed = text.removeprefix(SCRIPT_TOKEN_PREFIX).partition(".")
    if not text.startswith(SCRIPT_TOKEN_PREFIX) or not dot:
        raise Unauthorized("SVC_TOKEN is not a script token (svct_…); make one at /settings?tab=tokens")
    try:
        return from_text(token), DeviceKey.generate(unb64u(seed, KEY_BYTES))
    except (Invalid, Unauthorized):
        raise Unauthorized("SVC_TOKEN is damaged; make a new one at /settings?tab=tokens") from None
