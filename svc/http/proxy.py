"""The proxy that the environment sets for a server (HTTP_PROXY, HTTPS_PROXY, ALL_PROXY, NO_PROXY)."""

from __future__ import annotations

from typing import NamedTuple
from urllib.parse import unquote, urlsplit
from urllib.request import getproxies, proxy_bypass

from localstore.core.errors import UsageError
from localstore.core.paths import terminal_safe

PORTS = {"http": 80, "https": 443, "socks5": 1080, "socks5h": 1080}


class Proxy(NamedTuple):
    """A proxy. `url`: without password; `address`: host and port; `auth`: user and password."""

    url: str
    address: tuple[str, int]
    auth: tuple[str, str] | None


def proxy_for(origin: str) -> Proxy | None:
    """The proxy for a server; None if it is called directly. Raises UsageError for an unsupported one."""
    parts = urlsplit(origin)
    known = getproxies()
    named = known.get(parts.scheme) or known.get("all")
    if not named or proxy_bypass(parts.hostname or ""):
        return None
    return _parse(named)


def _parse(named: str) -> Proxy:
    try:
        parts = urlsplit(named if "://" in named else f"http://{named}")
        port = parts.port or PORTS.get(parts.scheme, 0)
    except ValueError:
        raise _unusable(named) from None
    if parts.scheme not in PORTS or not parts.hostname:
        raise _unusable(named)
    host = parts.hostname
    url = f"{parts.scheme}://{f'[{host}]' if ':' in host else host}:{port}"
    auth = None if parts.username is None else (unquote(parts.username), unquote(parts.password or ""))
    return Proxy(url, (host, port), auth)


def _unusable(named: str) -> UsageError:
    shown = terminal_safe(named.rpartition("@")[2][:200])  # without the password
    return UsageError(
        f"the proxy '{shown}' of the environment is not one that svc can use; write http://HOST:PORT, "
        "https://HOST:PORT or socks5://HOST:PORT, or name the server in NO_PROXY"
    )
