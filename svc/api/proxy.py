"""The proxy that the environment names for a server (HTTP_PROXY, HTTPS_PROXY, ALL_PROXY, NO_PROXY)."""

from __future__ import annotations

from base64 import b64encode
from typing import NamedTuple
from urllib.parse import unquote, urlsplit
from urllib.request import getproxies, proxy_bypass

from localstore.core.errors import UsageError
from localstore.core.paths import terminal_safe


class Proxy(NamedTuple):
    """Where it listens, and the headers that let us through."""

    host: str
    port: int
    fields: list[tuple[bytes, bytes]]


def proxy_for(origin: str) -> Proxy | None:
    """None where the server is called directly. UsageError for a proxy that nothing here can speak to."""
    parts = urlsplit(origin)
    known = getproxies()
    named = known.get(parts.scheme) or known.get("all")
    if not named or proxy_bypass(parts.hostname or ""):
        return None
    return _parse(named)


def _parse(named: str) -> Proxy:
    try:
        parts = urlsplit(named if "://" in named else f"http://{named}")
        port = parts.port or 80
    except ValueError:
        raise _unusable(named) from None
    if parts.scheme != "http" or not parts.hostname:
        raise _unusable(named)
    if parts.username is None:
        return Proxy(parts.hostname, port, [])
    user = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
    return Proxy(parts.hostname, port, [(b"Proxy-Authorization", b"Basic " + b64encode(user.encode()))])


def _unusable(named: str) -> UsageError:
    shown = terminal_safe(named.rpartition("@")[2][:200])  # without the password
    return UsageError(
        f"the proxy '{shown}' of the environment is not one that svc can use; write http://HOST:PORT, or "
        "name the server in NO_PROXY"
    )
