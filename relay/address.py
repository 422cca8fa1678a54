"""Where a request comes from."""

from __future__ import annotations

import ipaddress

from sanic.request import Request


def client_address(request: Request, proxy_hops: int) -> str:
    """The caller's IP address. Behind `proxy_hops` reverse proxies it is the entry of X-Forwarded-For that
    the outermost of them wrote; what a client puts in front of it is never believed."""
    if proxy_hops > 0:
        hops = ",".join(request.headers.getall("x-forwarded-for", [])).split(",")
        if len(hops) >= proxy_hops and (address := _address(hops[-proxy_hops].strip())):
            return address
    return request.ip or "local"


def is_loopback(request: Request) -> bool:
    """Whether the request comes from this machine and through no proxy."""
    if request.headers.get("x-forwarded-for") or request.headers.get("forwarded"):
        return False
    address = _address(request.ip or "")
    return address is not None and ipaddress.ip_address(address).is_loopback


def _address(text: str) -> str | None:
    try:
        return str(ipaddress.ip_address(text))
    except ValueError:
        return None
