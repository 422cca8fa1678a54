"""Finds the proxy that the environment sets for a server (HTTP_PROXY, HTTPS_PROXY, ALL_PROXY, NO_PROXY)."""

from __future__ import annotations

from ipaddress import ip_address, ip_network
from typing import NamedTuple
from urllib.parse import unquote, urlsplit
from urllib.request import getproxies, proxy_bypass

from localstore.core.errors import UsageError
from localstore.core.paths import terminal_safe

PORTS = {"http": 80, "https": 443, "socks5": 1080, "socks5h": 1080}


class Proxy(NamedTuple):
    """A proxy. `url` is its address without the password, `address` its (host, port). `auth` is (user,
    password), or None if the proxy needs none."""

    url: str
    address: tuple[str, int]
    auth: tuple[str, str] | None


def proxy_for(origin: str) -> Proxy | None:
    """Return the proxy for a server; None for a direct connection. Raises UsageError if the environment names
    an unsupported kind of proxy."""
    parts = urlsplit(origin)
    proxies = getproxies()
    named = proxies.get(parts.scheme) or proxies.get("all")
    host, port = parts.hostname or "", parts.port or PORTS.get(parts.scheme, 0)
    excepted = _is_excepted(host, port, proxies["no"]) if "no" in proxies else proxy_bypass(host)
    if not named or excepted:
        return None
    return _parse(named)


def _is_excepted(host: str, port: int, exceptions: str) -> bool:
    """Return whether NO_PROXY (`exceptions`) matches the server, by the rules of Go and curl. An entry of
    NO_PROXY is a CIDR range, an address, or a domain. A domain includes its subdomains, and may also be
    written `.DOMAIN` or `*.DOMAIN`. Domains and addresses may end with `:PORT`."""
    return any(_matches(entry.strip().lower(), host.lower(), port) for entry in exceptions.split(","))


def _matches(entry: str, host: str, port: int) -> bool:
    try:
        address = ip_address(host)
    except ValueError:
        address = None
    if "/" in entry:
        try:
            return address is not None and address in ip_network(entry, strict=False)
        except ValueError:
            return False
    name, colon, wanted_port = entry.rpartition(":")
    if not colon or entry.endswith("]") or (entry.count(":") > 1 and not name.endswith("]")):
        name, wanted_port = entry, ""
    if wanted_port and wanted_port != str(port):
        return False
    name = name.strip("[]")
    if name == "*":
        return True
    name = name.removeprefix("*").lstrip(".")
    if address is None:
        return bool(name) and (host == name or host.endswith(f".{name}"))
    try:
        return address == ip_address(name)
    except ValueError:
        return False


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
    label = terminal_safe(named.rpartition("@")[2][:200])  # without the password
    return UsageError(
        f"the proxy '{label}' of the environment is not one that svc can use; write http://HOST:PORT, "
        "https://HOST:PORT or socks5://HOST:PORT, or name the server in NO_PROXY"
    )
