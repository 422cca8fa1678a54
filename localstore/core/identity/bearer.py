"""Text forms of tokens: base64url, the Authorization header, and script tokens for SVC_TOKEN."""

from __future__ import annotations

import base64
from typing import NamedTuple

from localstore.core.encoding import b64u, unb64u
from localstore.core.errors import Invalid, Unauthorized
from localstore.core.identity.keys import KEY_BYTES, DeviceKey
from localstore.core.identity.request_signature import authority_of
from localstore.core.model.limits import TOKEN_RAW_MAX

SCRIPT_TOKEN_PREFIX = "svct2_"  # noqa: S105 - a prefix, not a secret
_FIRST_PREFIX = "svct_"  # of tokens that name no server

_TEXT_MAX = (TOKEN_RAW_MAX * 4 + 2) // 3


def to_text(raw: bytes) -> str:
    """The base64url text of a token's bytes."""
    return b64u(raw)


def from_text(text: str) -> bytes:
    """The bytes of a token from its base64url text. Raises Unauthorized for text that is empty, too long or
    not canonical."""
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
    """The token text of an Authorization header. Raises Unauthorized for any scheme other than Bearer. Also
    raises it for a whole script token, because that contains a private key, which must not be sent."""
    scheme, _, text = value.partition(" ")
    if scheme.lower() != "bearer":
        raise Unauthorized("the Authorization header must read: Bearer TOKEN")
    _refuse_private_key(text)
    return text


def text_in_password(value: str) -> str:
    """The token text of an Authorization header: a Bearer token, or the password of Basic authentication (RFC
    7617), as git sends it. The user name is ignored. Raises Unauthorized for another scheme, and for a
    whole script token, because that contains a private key."""
    scheme, _, text = value.partition(" ")
    if scheme.lower() != "basic":
        return text_in_authorization(value)
    try:
        name, colon, password = base64.b64decode(text, validate=True).decode("utf-8").partition(":")
    except ValueError:
        colon = ""
    if not colon:
        raise Unauthorized("the Authorization header must read: Basic, then NAME:TOKEN in base64")
    _refuse_private_key(name)
    _refuse_private_key(password)
    return password


def _refuse_private_key(text: str) -> None:
    """Raise Unauthorized for a whole script token: it contains a private key, which must not be sent to
    servers."""
    if text.startswith((SCRIPT_TOKEN_PREFIX, _FIRST_PREFIX)):
        raise Unauthorized(
            f"{text.partition('_')[0]}_… is a script token with its private key, which no server may see; "
            "revoke it, put a new one into SVC_TOKEN, and let git take its password from there: "
            "svc auth setup-git",
            reason="token",
        )


class ScriptTokenParts(NamedTuple):
    """The parts of SVC_TOKEN: the server's origin, the token, and the key it is bound to."""

    origin: str
    raw: bytes
    key: DeviceKey


def format_script_token(origin: str, raw: bytes, binding: DeviceKey) -> str:
    """The text for SVC_TOKEN: `svct2_<origin>.<token>.<binding seed>`, each part base64url. The seed is the
    private half of `binding`, the key that the token is bound to."""
    return f"{SCRIPT_TOKEN_PREFIX}{b64u(origin.encode('ascii'))}.{to_text(raw)}.{b64u(binding.seed)}"


def parse_script_token(text: str) -> ScriptTokenParts:
    """The parts of the text in SVC_TOKEN. Raises Unauthorized for any other text, without quoting it. Also
    refused is the old format `svct_…`, because it does not name its server."""
    if text.startswith(_FIRST_PREFIX):
        raise Unauthorized(
            "SVC_TOKEN is of the first form (svct_…), which does not say which server it is for, and is sent "
            "to none; make a new one at https://YOUR-SERVER/settings?tab=tokens"
        )
    parts = text.removeprefix(SCRIPT_TOKEN_PREFIX).split(".")
    if not text.startswith(SCRIPT_TOKEN_PREFIX) or len(parts) != 3:
        raise Unauthorized("SVC_TOKEN is not a script token (svct2_…); make one at /settings?tab=tokens")
    try:
        origin = unb64u(parts[0]).decode("ascii")
        authority_of(origin)
        return ScriptTokenParts(origin, from_text(parts[1]), DeviceKey.generate(unb64u(parts[2], KEY_BYTES)))
    except (Invalid, Unauthorized, UnicodeDecodeError, ValueError):
        raise Unauthorized("SVC_TOKEN is damaged; make a new one at /settings?tab=tokens") from None
