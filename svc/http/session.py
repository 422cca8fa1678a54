"""Sessions of this machine, one per server, each in a 0600 file sealed to the machine's transport key."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal
from urllib.parse import quote

import msgspec

from localstore.core.encoding import b64u, unb64u
from localstore.core.errors import ClientError, Invalid, Unauthorized
from localstore.core.identity.bearer import ScriptToken, parse_script_token, to_text
from localstore.core.identity.keys import seal_to
from svc.http.client import Credential
from svc.http.identity import Identity, find_identity, load_identity, replace_identity
from svc.http.origin import same_server
from svc.http.private_file import read_private, write_private

TOKEN_VARIABLE = "SVC_TOKEN"  # noqa: S105 - the variable's name


class Session(msgspec.Struct, frozen=True, kw_only=True):
    """What a sign-in leaves behind. `origin` is pinned: this token goes nowhere else. `registered`: the
    account knows this machine's device key, so that it may seal. `device_name`: what it is registered as."""

    v: Literal[1] = 1
    origin: str
    token: str
    user_id: str
    session_id: str
    handle: str | None
    expires_at: str
    registered: bool = False
    device_name: str = ""

    def seconds_left(self, now: datetime) -> float:
        """Until the session ends; negative after it."""
        try:
            return (datetime.fromisoformat(self.expires_at) - now).total_seconds()
        except (ValueError, TypeError):
            return 0.0


class _Settings(msgspec.Struct, frozen=True):
    """`settings.json`: the server that commands talk to when nothing else names one."""

    server: str | None = None


def script_token() -> ScriptToken | None:
    """What SVC_TOKEN holds, None where it is not set. Unauthorized for what is no such token."""
    text = os.environ.get(TOKEN_VARIABLE, "").strip()
    return parse_script_token(text) if text else None


class Sessions:
    """The sessions and keys kept in `home` (SVC_HOME)."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self._identity: Identity | None = None

    @property
    def identity(self) -> Identity:
        """This machine's keys, made on first use."""
        if self._identity is None:
            self._identity = load_identity(self.home)
        return self._identity

    def renew_identity(self) -> Identity:
        """New keys for this machine; what was signed in or registered with the old ones is so no longer."""
        self._identity = replace_identity(self.home)
        return self._identity

    def find(self, origin: str) -> Session | None:
        """The session kept for this server, also when it has ended."""
        content = read_private(self._file(origin))
        if content is None:
            return None
        identity = find_identity(self.home)
        if identity is None:
            return None
        self._identity = identity
        try:
            session = msgspec.json.decode(identity.transport.unseal(unb64u(content.decode())), type=Session)
        except (Invalid, msgspec.DecodeError, UnicodeDecodeError):
            raise ClientError(
                f"the session in {self._file(origin)} cannot be opened; run: svc login --server {origin}"
            ) from None
        return session if session.origin == origin else None

    def save(self, session: Session) -> None:
        """Keep a session and make its server the default one."""
        sealed = seal_to(self.identity.transport.public, msgspec.json.encode(session))
        write_private(self._file(session.origin), b64u(sealed).encode())
        write_private(self.home / "settings.json", msgspec.json.encode(_Settings(session.origin)))

    def forget(self, origin: str) -> None:
        self._file(origin).unlink(missing_ok=True)

    def default_server(self) -> str | None:
        """The server that was signed in to last."""
        content = read_private(self.home / "settings.json")
        try:
            return msgspec.json.decode(content, type=_Settings).server if content else None
        except msgspec.DecodeError:
            raise ClientError(
                f"{self.home / 'settings.json'} is damaged; remove it and run: svc login"
            ) from None

    def credential(self, origin: str, now: datetime | None = None) -> Credential | None:
        """SVC_TOKEN if it is set, else the kept session. None: nobody signed in here.

        Raises Unauthorized when the session has ended, with the way back, and for a token that is for another
        server, whatever named this one.
        """
        script = script_token()
        if script is not None:
            if not same_server(script.origin, origin):
                raise Unauthorized(
                    f"SVC_TOKEN is for {script.origin} and is sent nowhere else, and this command is for "
                    f"{origin}; take a token of that server, or unset SVC_TOKEN"
                )
            return Credential(to_text(script.raw), script.key)
        session = self.find(origin)
        if session is None:
            return None
        if session.seconds_left(now or datetime.now(UTC)) <= 0:
            raise Unauthorized(
                f"the session on {origin} ended at {session.expires_at}; run: svc login --server {origin}",
                ended_at=session.expires_at,
            )
        return Credential(session.token, self.identity.device)

    def _file(self, origin: str) -> Path:
        return self.home / "sessions" / quote(origin, safe="")
