"""The proxy that the environment (HTTPS_PROXY, HTTP_PROXY, ALL_PROXY, NO_PROXY) or the system names."""

from __future__ import annotations

import base64
import os
import sys
from typing import NamedTuple
from urllib.parse import unquote, urlsplit

from localstore.core.errors import UsageError
from localstore.core.paths import terminal_safe


class Proxy(NamedTuple):
    """`headers` carry the name and password that its address gives."""

    address: tuple[str, int]
    headers: dict[str, str]


def proxy_for(origin: str) -> Proxy | None:
    """The proxy for an origin; None: straight there. UsageError for one that is not spoken to over HTTP."""
    named = any(name.lower().endswith("_proxy") for name in os.environ)
    if not named and sys.platform not in ("darwin", "win32"):
        return None
    from urllib.request import getproxies, proxy_bypass  # 20 ms of CPU, so only here

    parts = urlsplit(origin)
    known = getproxies()
    found = known.get(parts.scheme) or known.get("all")
    if not found or proxy_bypass(parts.netloc):
        return None
    return _read(found)


def _read(written: str) -> Proxy:
    parts = urlsplit(written if "://" in written else f"http://{written}")
    try:
        host, port = parts.hostname, parts.port or 80
    except ValueError:
        host, port = None, 0
    if parts.scheme != "http" or not host:
        where = f"{parts.scheme}://{host or ''}"  # without the password
        raise UsageError(
            f"the proxy {terminal_safe(where[:200])} cannot be used; svc speaks HTTP with proxies: set "
            "HTTPS_PROXY to http://HOST:PORT, or NO_PROXY to this server"
        )
    headers = {}
    if parts.username is not None:
        pair = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
        headers["Proxy-Authorization"] = f"Basic {base64.b64encode(pair.encode()).decode()}"
    return Proxy((host, port), headers)
