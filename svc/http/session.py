"""The sessions of this machine. Each server's session is in a file of mode 0600, encrypted with a key that
only this machine has."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal
from urllib.parse import quote

import msgspec

from localstore.core.encoding import b64u, unb64u
from localstore.core.errors import ClientError, Invalid, Unauthorized
from localstore.core.identity.bearer import ScriptTokenParts, parse_script_token, to_text
from localstore.core.identity.keys import DeviceKey, seal_to
from svc.http.credential import Credential
from svc.http.identity import Identity, find_identity, load_identity, replace_identity
from svc.http.origin import same_server
from svc.http.private_file import read_private, write_private
from svc.http.remote import link

TOKEN_VARIABLE = "SVC_TOKEN"  # noqa: S105 - the variable's name


class Session(msgspec.Struct, frozen=True, kw_only=True):
    """A sign-in to the server `origin`. The token is sent to no other server. `registered` says whether the
    account has this machine's device key. `device_name` is the name of this machine in the account."""

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
        """Seconds until the session expires; negative after that."""
        try:
            return (datetime.fromisoformat(self.expires_at) - now).total_seconds()
        except (ValueError, TypeError):
            return 0.0


class _Settings(msgspec.Struct, frozen=True):
    """The content of `settings.json`. `server` is the server that commands use by default, or None."""

    server: str | None = None


def script_token() -> ScriptTokenParts | None:
    """Return the token in the variable SVC_TOKEN; None if the variable is not set. Raises Unauthorized if the
    token is malformed."""
    text = os.environ.get(TOKEN_VARIABLE, "").strip()
    return parse_script_token(text) if text else None


class Sessions:
    """The sessions and the keys of this machine, which are stored in the folder `home` (SVC_HOME)."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self._identity: Identity | None = None

    @property
    def identity(self) -> Identity:
        """This machine's keys, which are created on first use."""
        if self._identity is None:
            self._identity = load_identity(self.home)
        return self._identity

    def signing_key(self) -> DeviceKey:
        """Return the key that signs seals and releases. It is this machine's key or, in a session over SSH,
        the key in the user's forwarded agent. Raises UsageError in a session over SSH without an agent."""
        ssh = link()
        return self.identity.device if ssh is None else ssh.key()

    def renew_identity(self) -> Identity:
        """Create new keys for this machine, and return them. The sessions of the old keys, and their
        registrations on servers, are lost."""
        self._identity = replace_identity(self.home)
        return self._identity

    def find(self, origin: str) -> Session | None:
        """Return the stored session of this server, even if it has expired. None if there is none."""
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
        """Store a session and make its server the default."""
        sealed = seal_to(self.identity.transport.public, msgspec.json.encode(session))
        write_private(self._file(session.origin), b64u(sealed).encode())
        write_private(self.home / "settings.json", msgspec.json.encode(_Settings(session.origin)))

    def forget(self, origin: str) -> None:
        self._file(origin).unlink(missing_ok=True)

    def default_server(self) -> str | None:
        """Return the origin of the server that was signed in to last; None if there was none."""
        content = read_private(self.home / "settings.json")
        try:
            return msgspec.json.decode(content, type=_Settings).server if content else None
        except msgspec.DecodeError:
            raise ClientError(
                f"{self.home / 'settings.json'} is damaged; remove it and run: svc login"
            ) from None

    def credential(self, origin: str, now: datetime | None = None) -> Credential | None:
        """Return the token and key for requests to `origin`. They come from SVC_TOKEN if it is set, else from
        the stored session. None if there is neither.

        Raises Unauthorized if the session has expired, or if SVC_TOKEN is for another server."""
        script = script_token()
        if script is not None:
            if not same_server(script.origin, origin):
                raise Unauthorized(
                    f"SVC_TOKEN is for {script.origin} and this command uses "
                    f"{origin}; use a token of that server, or unset SVC_TOKEN"
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
        ssh = link()
        alone = ssh.key() if ssh is not None and ssh.agent else None
        return Credential(session.token, self.identity.device, alone)

    def _file(self, origin: str) -> Path:
        return self.home / "sessions" / quote(origin, safe="")
