"""Finds the address of the client of a request."""

from __future__ import annotations

import ipaddress
from functools import lru_cache

from sanic.request import Request


def client_address(request: Request, proxy_hops: int) -> str:
    """The caller's IP address. Behind `proxy_hops` reverse proxies, it is the entry of X-Forwarded-For that
    the outermost proxy wrote; entries that the client sent are ignored. A connection that the SSH listener
    (`relay.ssh.door`) passed on came through no proxy."""
    if proxy_hops > 0 and not is_handed(request):
        hops = ",".join(request.headers.getall("x-forwarded-for", [])).split(",")
        if len(hops) >= proxy_hops and (address := _find_address(hops[-proxy_hops].strip())):
            return address
    return request.ip or "local"


@lru_cache(maxsize=4096)
def network_of(address: str) -> str:
    """The name under which an address is counted for limits: the address itself for IPv4, its /64 network for
    IPv6."""
    try:
        parsed = ipaddress.ip_address(address)
    except ValueError:
        return address
    if parsed.version == 4:
        return address
    mapped = parsed.ipv4_mapped
    return str(mapped) if mapped else str(ipaddress.ip_network((parsed.packed, 64), strict=False))


def is_handed(request: Request) -> bool:
    """Whether the request comes from a session over SSH."""
    return request.conn_info is not None and getattr(request.conn_info.ctx, "handed", False)


def is_loopback(request: Request) -> bool:
    """Whether the request comes from this machine and through no proxy."""
    if is_handed(request) or request.headers.get("x-forwarded-for") or request.headers.get("forwarded"):
        return False
    address = _find_address(request.ip or "")
    return address is not None and ipaddress.ip_address(address).is_loopback


def _find_address(text: str) -> str | None:
    try:
        return str(ipaddress.ip_address(text))
    except ValueError:
        return None
