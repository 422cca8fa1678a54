"""Signing in and out, and the sessions of an account (design/auth)."""

from __future__ import annotations

from collections.abc import Iterator

from localstore.core.identity.device_grant import GRANT_TYPE
from localstore.core.model.auth import (
    Challenge,
    DeviceCode,
    DeviceCodeStart,
    DeviceKeyProof,
    DeviceKeyStart,
    Handle,
    PairingCode,
    SealedSession,
    Session,
    SessionGrant,
    TokenRequest,
    UserInfo,
)
from svc.http.client import Http
from svc.http.target import segment

ROOT = "/api/v1/auth"


class AuthCalls:
    def __init__(self, http: Http) -> None:
        self._http = http

    def whoami(self) -> UserInfo:
        return self._http.call("GET", "/auth/userinfo", UserInfo)

    def logout(self) -> None:
        """End the session that this request carries, and its children."""
        self._http.do("POST", "/auth/logout")

    def device_code(self, body: DeviceCodeStart) -> DeviceCode:
        """Begin the device authorization grant (RFC 8628)."""
        return self._http.call("POST", f"{ROOT}/cli/device-code", DeviceCode, body=body)

    def claim(self, device_code: str) -> SealedSession:
        """The session once it is approved; AuthorizationPending, SlowDown, AccessDenied or ExpiredToken."""
        body = TokenRequest(grant_type=GRANT_TYPE, device_code=device_code)
        return self._http.call("POST", f"{ROOT}/cli/token", SealedSession, body=body)

    def challenge(self, body: DeviceKeyStart) -> Challenge:
        """Begin the sign-in by device key; `body.handle` names the account."""
        return self._http.call("POST", f"{ROOT}/device-key/challenge", Challenge, body=body)

    def device_login(self, body: DeviceKeyProof) -> SessionGrant:
        """Answer the challenge. HandleTaken when the account does not know this key."""
        return self._http.call("POST", f"{ROOT}/device-key/login", SessionGrant, body=body)

    def pairing_code(self) -> PairingCode:
        """A one-time code with which one more device joins this account."""
        return self._http.call("POST", f"{ROOT}/pairing-codes", PairingCode, creates=True)

    def sessions(self, limit: int | None = None) -> Iterator[Session]:
        """Sessions and script tokens of this account."""
        return self._http.pages(f"{ROOT}/tokens", Session, limit=limit)

    def revoke(self, session_id: str) -> None:
        self._http.do("DELETE", f"{ROOT}/tokens/{segment(session_id)}")

    def handle(self) -> Handle:
        return self._http.call("GET", "/api/v1/handles/me", Handle)
