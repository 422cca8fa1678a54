"""Parses and compares the addresses of servers. An origin is scheme, host and port."""

from __future__ import annotations

from urllib.parse import urlsplit

from localstore.core.errors import Invalid, UsageError
from localstore.core.identity.request_signature import authority_of
from localstore.core.paths import terminal_safe


def parse_origin(typed: str) -> str:
    """Return the origin of the server that the user typed, as `node.example`, `localhost:8080` or a URL. If
    no scheme was typed, it is http for this machine, else https.

    Raises UsageError if the text is not the address of a server."""
    text = typed.strip().rstrip("/")
    if "://" not in text:
        text = f"{'http' if is_loopback('http://' + text) else 'https'}://{text}"
    try:
        return f"{urlsplit(text).scheme}://{authority_of(text)}"
    except (Invalid, ValueError):
        raise UsageError(
            f"'{terminal_safe(typed[:200])}' is not the address of a server; write https://node.example"
        ) from None


def is_loopback(origin: str) -> bool:
    """Return whether the address always means this machine, independent of the network."""
    try:
        host = urlsplit(origin).hostname or ""
        return host == "localhost" or host.endswith(".localhost") or _is_loopback_address(host)
    except ValueError:
        return False


def _is_loopback_address(host: str) -> bool:
    if ":" not in host and not host.replace(".", "").isdigit():
        return False  # a name: ipaddress need not be loaded to say so
    from ipaddress import ip_address

    return ip_address(host).is_loopback


def same_server(pinned: str, claimed: str) -> bool:
    """Return whether two addresses mean the same server. `pinned` is the address that this machine stored,
    `claimed` one that a server states. If both are names of this machine (such as localhost and 127.0.0.1),
    only scheme and port must be equal."""
    if pinned == claimed:
        return True
    try:
        mine, theirs = urlsplit(pinned), urlsplit(claimed)
        ports = mine.port == theirs.port and mine.scheme == theirs.scheme
    except ValueError:
        return False
    return ports and is_loopback(pinned) and is_loopback(claimed)
