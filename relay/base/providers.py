"""Reads the identity providers of a node: the one of RAUTHY_URL and its related variables, and those in the
file that TR_OIDC_PROVIDERS names.

[{"name": "google", "issuer": "https://accounts.google.com", "client_id": "…",
  "client_secret_file": "/run/secrets/google"},
 {"name": "github", "kind": "github", "client_id": "…", "client_secret_file": "/run/secrets/github"}]
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal
from urllib.parse import urlsplit

import msgspec

from localstore.core.model.limits import OIDC_FILE, OIDC_PROVIDERS
from relay.base.environment import Environment, StartRefused

RAUTHY = "rauthy"  # name of the provider that RAUTHY_URL gives
RESERVED = ("password", "device", "guest")  # what `signed_in_by` says of other ways
GITHUB = "https://github.com"
CALLBACK = "/auth/callback"
_NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,31}")

Kind = Literal["oidc", "github"]


@dataclass(frozen=True, slots=True)
class Provider:
    """An identity provider. `name`: its name in `?provider=` and addresses; `label`: its name for people;
    `issuer`: its origin or address, without a trailing slash."""

    name: str
    label: str
    kind: Kind
    issuer: str
    client_id: str
    client_secret: str | None = field(repr=False)

    @property
    def answers_as(self) -> str:
        """The issuer that the provider's answers must name (RFC 9207). For GitHub this is not its origin but
        an address below it."""
        return f"{self.issuer}/login/oauth" if self.kind == "github" else self.issuer

    @property
    def callback(self) -> str:
        """The path to which the provider sends the browser back. Each provider has its own path, so that a
        provider cannot use the answer of another provider."""
        return CALLBACK if self.name == RAUTHY else f"{CALLBACK}/{self.name}"

    @property
    def host(self) -> str:
        return urlsplit(self.issuer).hostname or ""


class _ProviderEntry(msgspec.Struct, forbid_unknown_fields=True):
    """A provider as the file that TR_OIDC_PROVIDERS names describes it. Without `client_secret_file` the
    relay is a public client of the provider."""

    name: str
    client_id: str
    issuer: str = ""
    kind: Kind = "oidc"
    label: str = ""
    client_secret_file: str | None = None


def read(env: Environment, public_url: str, *, dev: bool) -> tuple[Provider, ...]:
    """The identity providers, in the order of their sign-in buttons. Raises StartRefused for settings that
    cannot work."""
    providers = [*_read_rauthy(env, public_url, dev), *_of_file(env, dev)]
    names = [provider.name for provider in providers]
    for name in names:
        if names.count(name) > 1:
            raise StartRefused(f"two identity providers are called {name}; rename one in TR_OIDC_PROVIDERS")
    return tuple(providers)


def _read_rauthy(env: Environment, public_url: str, dev: bool) -> list[Provider]:
    url, client_id = env.get("RAUTHY_URL"), env.get("RAUTHY_CLIENT_ID")
    expected = f"{public_url}{CALLBACK}"
    redirect = env.get("RAUTHY_REDIRECT_URI") or expected
    if redirect != expected:
        raise StartRefused(f"RAUTHY_REDIRECT_URI={redirect} must be {expected}")
    env.require_beside("RAUTHY_URL", "RAUTHY_CLIENT_ID", "RAUTHY_CLIENT_SECRET", "RAUTHY_REDIRECT_URI")
    secret = env.secret("RAUTHY_CLIENT_SECRET")
    if url is None:
        return []
    if client_id is None:
        raise StartRefused("RAUTHY_URL is set without RAUTHY_CLIENT_ID")
    issuer = _check_issuer("RAUTHY_URL", url, dev)
    return [Provider(RAUTHY, urlsplit(issuer).hostname or RAUTHY, "oidc", issuer, client_id, secret)]


def _of_file(env: Environment, dev: bool) -> list[Provider]:
    name = env.get("TR_OIDC_PROVIDERS")
    if name is None:
        return []
    where = f"TR_OIDC_PROVIDERS={name}"
    try:
        with Path(name).open("rb") as file:
            text = file.read(OIDC_FILE + 1)
        if len(text) > OIDC_FILE:
            raise StartRefused(f"{where} has more than {OIDC_FILE} bytes")
        entries = msgspec.json.decode(text, type=list[_ProviderEntry])
    except OSError as error:
        raise StartRefused(f"{where} cannot be read: {error.strerror}") from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise StartRefused(f"{where} is not a list of providers: {error}") from None
    if len(entries) > OIDC_PROVIDERS:
        raise StartRefused(f"{where} has more than {OIDC_PROVIDERS} providers")
    return [_read_provider(entry, where, dev) for entry in entries]


def _read_provider(entry: _ProviderEntry, where: str, dev: bool) -> Provider:
    if entry.name in RESERVED:
        raise StartRefused(f"{where}: the name {entry.name} means another way to sign in; choose another")
    if not _NAME.fullmatch(entry.name):
        raise StartRefused(f"{where}: the name {entry.name!r} is not of a-z, 0-9 and -")
    if not entry.client_id:
        raise StartRefused(f"{where}: {entry.name} has an empty client_id")
    secret = None
    if entry.client_secret_file is not None:
        files = {"CLIENT_SECRET_FILE": entry.client_secret_file}
        try:
            secret = Environment(files).secret("CLIENT_SECRET")
        except StartRefused as error:
            raise StartRefused(f"{where}: of {entry.name}, {error.detail}") from None
    if entry.kind == "github" and secret is None:
        raise StartRefused(f"{where}: {entry.name} needs a client_secret_file, as GitHub does")
    url = entry.issuer or (GITHUB if entry.kind == "github" else "")
    issuer = _check_issuer(f"{where}: the issuer of {entry.name}", url, dev)
    return Provider(entry.name, entry.label or entry.name, entry.kind, issuer, entry.client_id, secret)


def _check_issuer(where: str, url: str, dev: bool) -> str:
    parts = urlsplit(url)
    schemes = ("https", "http") if dev else ("https",)
    plain = not parts.query and not parts.fragment and "@" not in parts.netloc
    if parts.scheme not in schemes or not parts.hostname or not plain or not url.isascii():
        raise StartRefused(f"{where} is {url!r}, not an https address")
    return url.rstrip("/")
