"""Makes the password with which git reads one repository. It is the session's token, narrowed to reading that
repository for an hour.

git runs a credential helper with the word `get`, `store` or `erase`, and sends it lines of `name=value` (see
git-credential(1)). Nothing is stored here. Each `get` makes a new narrowed token."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta

import msgspec

from localstore.core.encoding import unb64u
from localstore.core.errors import Invalid, NotFound, ServerMisbehaved, UsageError
from localstore.core.identity import bearer
from localstore.core.identity.capability import attenuate
from localstore.core.model import auth
from localstore.core.names import parse_repo
from svc.api import Api
from svc.flows.git.settings import USE_PATH, settings_of
from svc.http.client import Http
from svc.http.credential import Credential
from svc.http.origin import parse_origin
from svc.http.session import Sessions

LIFETIME = timedelta(hours=1)
NAME = "svc"  # that git sends beside the token, which says whose it is


class Password(msgspec.Struct, frozen=True):
    """A user name and a password for git. `expires` is in seconds since 1970."""

    username: str
    password: str
    expires: int

    def lines(self) -> str:
        """Return the answer to git, as lines of `name=value`. Versions of git before 2.40 ignore the
        expiry."""
        return f"username={self.username}\npassword={self.password}\npassword_expiry_utc={self.expires}\n"


class PasswordRequest(msgspec.Struct, frozen=True):
    """git's request for a password for the server `origin`. `path` is the path of the repository, or None if
    git does not send it."""

    origin: str
    path: str | None


def read_request(text: str) -> PasswordRequest | None:
    """Parse the lines in which git sends a request. Returns None if the request is not about a web server. If
    a name occurs in several lines, the last one counts."""
    members: dict[str, str] = {}
    for line in text.split("\n"):
        if not line:
            break
        name, _, value = line.partition("=")
        members[name] = value
    if members.get("protocol") not in ("https", "http"):
        return None
    try:
        origin = parse_origin(f"{members['protocol']}://{members.get('host', '')}")
    except UsageError:
        return None
    return PasswordRequest(origin, members.get("path"))


def password_for(request: PasswordRequest, sessions: Sessions) -> Password | None:
    """Return the password for git's request. None if this machine is not signed in to that server, so that
    git tries another helper. Raises Unauthorized for an expired session, UsageError if git does not name the
    repository, and NotFound if the account cannot see the repository."""
    credential = sessions.credential(request.origin)
    if credential is None:
        return None
    if request.path is None:
        raise UsageError(
            f"git does not say which repository of {request.origin} it asks for; run: "
            f"git config --global {settings_of(request.origin)}.{USE_PATH} true"
        )
    owner, name = _names(request.path)
    api = Api(Http(request.origin, credential))
    try:
        repo_id = api.repo.find(owner, name).id
        keys = api.send(auth.TOKEN_KEYS).keys
    finally:
        api.close()
    return narrow_token(credential, repo_id, keys)


def narrow_token(credential: Credential, repo_id: str, keys: dict[str, str]) -> Password:
    """Return the token of a credential, narrowed to reading one repository for an hour. `keys` maps numbers
    to the server's public keys, in base64. One of these keys signed the token."""
    expires = datetime.fromtimestamp(time.time(), UTC) + LIFETIME
    try:
        roots = {int(number): unb64u(key) for number, key in keys.items()}
        repo = bytes.fromhex(repo_id)
        raw = attenuate(bearer.from_text(credential.token), roots, ops=["read"], repo=repo, expires=expires)
    except (Invalid, ValueError) as error:
        raise ServerMisbehaved(f"the token cannot be narrowed to one repository: {error}") from None
    return Password(NAME, bearer.to_text(raw), int(expires.timestamp()))


def _names(path: str) -> tuple[str, str]:
    """Return (owner, name) of the repository that the path in git's request names. Raises NotFound if it
    names none."""
    try:
        address = parse_repo("/".join(path.strip("/").split("/")[:2]).removesuffix(".git"))
    except Invalid as error:
        raise NotFound(error.detail) from None
    return address.owner, address.name
