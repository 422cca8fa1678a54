"""Builds of the client and their installers."""

from __future__ import annotations

from localstore.core.model.catalog import distribution as endpoints
from localstore.core.model.catalog.distribution import ClientRelease
from relay.caller import Caller
from relay.domain.catalog import distribution
from relay.http.routing import Reply, route, serves


@serves(endpoints.RELEASE, operation="distribution.get", errors=(404, 503))
async def client_release(caller: Caller) -> ClientRelease:
    """The newest builds of the client: size, SHA-256 and source commit of each"""
    return await distribution.release(caller)


@serves(
    endpoints.DOWNLOAD,
    operation="distribution.get",
    media="application/octet-stream",
    others=(206, 304),
    errors=(416, 503),
    cost=10,
)
async def client_build(caller: Caller, artifact: str) -> Reply:
    """One build of the client; with ETag and ranges"""
    return await distribution.download(caller, artifact)


@route("GET", "/cli/install.sh", operation="distribution.get", media="text/x-shellscript", errors=(404, 503))
async def install_sh(caller: Caller) -> Reply:
    """Installs the client on Linux and macOS, after it compared the SHA-256"""
    return await distribution.script(caller, "install.sh")


@route("GET", "/cli/install.ps1", operation="distribution.get", media="text/plain", errors=(404, 503))
async def install_ps1(caller: Caller) -> Reply:
    """Installs the client on Windows, after it compared the SHA-256"""
    return await distribution.script(caller, "install.ps1")
