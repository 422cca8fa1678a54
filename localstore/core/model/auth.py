"""Sessions, device keys and sign-in (docs/design/005)."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec

from localstore.core.endpoint import Endpoint
from localstore.core.errors import BadRequest, Conflict, Forbidden
from localstore.core.model.base import Line, Model, Page, PageQuery, RepoName, Sent
from localstore.core.model.limits import SCRIPT_TOKEN_DAYS


class GrantError(BadRequest):
    """The device authorization grant was refused. The member `error` of the answer is the same as `code`, as
    RFC 8628 §3.5 demands."""

    code = "invalid_grant"

    def __init__(self, detail: str = "", **extra: Any) -> None:
        super().__init__(detail, error=self.code, **extra)


class AuthorizationPending(GrantError):
    """Nobody has approved or denied the sign-in yet; poll again after the interval."""

    code = "authorization_pending"


class SlowDown(GrantError):
    """The client polled too soon; `interval` is the number of seconds to wait between polls from now on."""

    code = "slow_down"


class AccessDenied(GrantError):
    """The person denied the sign-in."""

    code = "access_denied"


class ExpiredToken(GrantError):
    """The device code has expired; start the sign-in again."""

    code = "expired_token"


class UnsupportedGrantType(GrantError):
    """`grant_type` is not the grant type of the device authorization grant."""

    code = "unsupported_grant_type"


class IdentityLevel(Forbidden):
    """Guests may read, star and use documents; anything else needs an account."""

    code = "identity_level"


class SignUpClosed(Forbidden):
    """Only the operator of this node creates accounts."""

    code = "sign_up_closed"


class StateInvalid(BadRequest):
    """The answer of an identity provider does not belong to a sign-in that this browser began recently."""

    code = "state_invalid"


class LoginTaken(Conflict):
    """The person at the identity provider is already linked to an account, or the account is already linked
    to this provider."""

    code = "login_taken"


class LastWayIn(Conflict):
    """The account would have no way left to sign in."""

    code = "last_way_in"


class GuestNoRefresh(Forbidden):
    """A guest session ends after a day and cannot be refreshed."""

    code = "guest_no_refresh"


class HandleTaken(Forbidden):
    """The handle belongs to an account that has not registered this device key."""

    code = "handle_taken"


class DeviceKeyExists(Conflict):
    """This device key is already registered."""

    code = "device_key_exists"


Phase = Literal["ephemeral", "recovery_phrase", "local", "oidc_linked", "webauthn", "multi_device"]


class Session(Model, frozen=True):
    """A session of an account. `kind`: `script` for a token made in the settings, `ssh` for the terminal app
    over SSH. `current`: this session made the request."""

    id: str
    kind: Literal["browser", "cli", "device", "guest", "script", "ssh"]
    label: str
    created_at: str
    expires_at: str
    last_used_at: str | None = None
    device_key_id: str | None = None
    current: bool = False


class UserInfo(Model, frozen=True):
    """The caller's account and session. `session_kind`, `device_key_id`: with which kind of session and which
    device key this request was made. `signed_in_by`: password, device_key, or the name of an identity
    provider; None if unknown."""

    sub: str
    user_id: str
    handle: str | None
    phase: Phase
    level: int
    expires_at: str
    session_id: str
    session_kind: str
    device_key_id: str | None = None
    name: str | None = None
    email: str | None = None
    signed_in_by: str | None = None


class SessionGrant(Model, omit_defaults=True, frozen=True):
    """A new session. `token`: its capability token (base64url). `refresh_token`: "" if the session cannot be
    refreshed or the caller is a browser."""

    user_id: str
    session_id: str
    expires_at: str
    token: str = ""
    refresh_token: str = ""
    handle: str | None = None


class DeviceKeyStart(Sent, frozen=True):
    """A request for a challenge that proves a device key. `ed25519`, `x25519`: the public keys of the device
    (32 bytes each); `name`: name of the machine; `handle`: the account to sign in to, for a sign-in without a
    browser; else left out."""

    ed25519: str
    x25519: str
    name: str = ""
    handle: str | None = None


class Challenge(Model, frozen=True):
    """A challenge to prove a device key. `sealed_challenge`: 32 bytes, encrypted in a libsodium sealed box
    for the X25519 key of the request. `account`: the account id that the signed registration must contain. If
    the handle is free, this is the id of the future account."""

    v: int
    challenge_id: str
    sealed_challenge: str
    origin: str
    expires_in: int
    account: str = ""


class DeviceKeyProof(Sent, frozen=True):
    """The proof that the caller has the device key. `signature`: Ed25519 signature of the challenge's
    transcript. `registration`: the key's signature of its own registration, which readers of seals verify.
    `pair`: the one-time code with which a further device joins the account."""

    challenge_id: str
    signature: str
    registration: str
    pair: str | None = None


class RegisteredKey(Model, frozen=True):
    id: str
    public_key: str
    name: str
    created_at: str
    last_used_at: str | None = None
    revoked_at: str | None = None


class DeviceKeyPatch(Sent, frozen=True):
    """A change of a device key. `name`: the new name of the machine."""

    name: Line


class PairingCode(Model, frozen=True):
    code: str
    expires_at: str


class DeviceCodeStart(Sent, frozen=True):
    transport_x25519: str
    device_ed25519: str
    label: str = ""


class DeviceCode(Model, frozen=True):
    """The first answer of the device authorization grant (RFC 8628): the codes with which a person approves
    the sign-in of a terminal in a browser."""

    device_code: str
    user_code: str
    verification_uri: str
    verification_uri_complete: str
    expires_in: int
    interval: int


class Approval(Sent, frozen=True):
    user_code: str
    fingerprint: str
    decision: Literal["approve", "deny"]


class ApprovalStatus(Model, frozen=True):
    status: Literal["approved", "denied"]


class TokenRequest(Model, frozen=True):  # RFC 6749, 3.2: members that are not known are ignored
    grant_type: str
    device_code: str


class SealedSession(Model, frozen=True):
    """A new session, encrypted for the client's transport key (docs/design/005)."""

    token_type: Literal["sealed"]
    alg: str
    sealed: str


class Handle(Model, frozen=True):
    handle: str | None
    user_id: str = ""


class HandleChoice(Sent, frozen=True):
    handle: RepoName


class RefreshRequest(Model, frozen=True):
    """A request for a new token, from a caller without cookies."""

    refresh_token: str


class ScriptTokenRequest(Sent, frozen=True):
    """A request for a new token for scripts. `days`: its lifetime, 1 to 365. `access`: `read`; `write`, which
    includes reading; or `admin`, which includes account settings."""

    label: Line
    days: Annotated[int, msgspec.Meta(ge=1, le=SCRIPT_TOKEN_DAYS)] = 30
    access: Literal["read", "write", "admin"] = "write"


class ScriptToken(Model, frozen=True):
    """A new token for scripts, shown only once. `token`: `svct2_<origin>.<token>.<binding seed>`."""

    id: str
    token: str
    expires_at: str


class TokenKeys(Model, frozen=True):
    """The public keys that verify the tokens of this relay: root key id → Ed25519 key (base64url). A client
    needs these keys to narrow a token offline."""

    keys: dict[str, str]


USER_INFO = Endpoint("GET", "/auth/userinfo", returns=UserInfo)
GUEST_LOGIN = Endpoint("POST", "/auth/guest-login", returns=SessionGrant, status=201, keyed=False)
REFRESH = Endpoint("POST", "/auth/refresh", returns=SessionGrant, keyed=False)
LOGOUT: Endpoint[None] = Endpoint("POST", "/auth/logout", status=204, keyed=False)
LOGOUT_BY_REFRESH: Endpoint[None] = Endpoint("POST", f"{REFRESH.path}/logout", status=204, keyed=False)

_TOKENS = "/api/v1/auth/tokens"
SESSIONS = Endpoint("GET", _TOKENS, query=PageQuery, returns=Page[Session])
REVOKE: Endpoint[None] = Endpoint("DELETE", f"{_TOKENS}/{{id}}", status=204)
CREATE_TOKEN = Endpoint("POST", _TOKENS, body=ScriptTokenRequest, returns=ScriptToken, status=201)
TOKEN_KEYS = Endpoint("GET", "/api/v1/auth/token-keys", returns=TokenKeys)

_GRANT = "/api/v1/auth/cli"
DEVICE_CODE = Endpoint("POST", f"{_GRANT}/device-code", body=DeviceCodeStart, returns=DeviceCode, keyed=False)
APPROVE = Endpoint("POST", f"{_GRANT}/approve", body=Approval, returns=ApprovalStatus)
CLAIM = Endpoint("POST", f"{_GRANT}/token", body=TokenRequest, returns=SealedSession, keyed=False)

_KEYS, _SIGN_IN = "/api/v1/repos/device-keys", "/api/v1/auth/device-key"
KEY_CHALLENGE = Endpoint(
    "POST", "/api/v1/repos/device-key-challenges", body=DeviceKeyStart, returns=Challenge, status=201
)
KEYS = Endpoint("GET", _KEYS, query=PageQuery, returns=Page[RegisteredKey])
REGISTER_KEY = Endpoint("POST", _KEYS, body=DeviceKeyProof, returns=RegisteredKey, status=201)
RENAME_KEY = Endpoint("PATCH", f"{_KEYS}/{{key_id}}", body=DeviceKeyPatch, returns=RegisteredKey)
REVOKE_KEY: Endpoint[None] = Endpoint("DELETE", f"{_KEYS}/{{key_id}}", status=204)
SIGN_IN_CHALLENGE = Endpoint(
    "POST", f"{_SIGN_IN}/challenge", body=DeviceKeyStart, returns=Challenge, status=201, keyed=False
)
SIGN_IN = Endpoint(
    "POST", f"{_SIGN_IN}/login", body=DeviceKeyProof, returns=SessionGrant, status=201, keyed=False
)
PAIRING_CODE = Endpoint("POST", "/api/v1/auth/pairing-codes", returns=PairingCode, status=201)

HANDLE = Endpoint("GET", "/api/v1/handles/me", returns=Handle)
CHANGE_HANDLE = Endpoint("PUT", "/api/v1/handles/me", body=HandleChoice, returns=Handle)
