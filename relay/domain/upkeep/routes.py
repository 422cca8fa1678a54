"""Routes of the node as a whole: health, version, configuration, metrics, and the description of its
interface.
"""

from __future__ import annotations

from sanic.request import Request

from localstore.core.encoding import hex_digest
from localstore.core.model import node
from localstore.core.model.node import Health, RelayVersion
from relay.base.metrics import MEDIA
from relay.caller import Caller
from relay.domain.upkeep import node as nodes
from relay.http import openapi
from relay.http.address import is_loopback
from relay.http.routing import TABLE, Reply, route, serves

ROBOTS = b"User-agent: *\nDisallow: /api/\nDisallow: /auth/\nDisallow: /settings\n"
ANY_ORIGIN = {"access-control-allow-origin": "*"}


@serves(node.HEALTH, operation="node.health", name="node.health", cost=0)
async def health(caller: Caller) -> Health:
    """Report that the process is running"""
    return Health(status="ok")


@serves(node.READY, operation="node.health", name="node.ready", errors=(503,), cost=0)
async def ready(caller: Caller) -> Reply:
    """Report whether the database and the event hub work"""
    return _health(await nodes.check_ready(caller.node))


@serves(node.READYZ, operation="node.health", name="node.readyz", errors=(503,), cost=0)
async def readyz(caller: Caller) -> Reply:
    """Report whether everything that the node depends on works"""
    return _health(await nodes.node_ready(caller.node))


@serves(node.VERSION, operation="node.describe", name="node.version")
async def version(caller: Caller) -> RelayVersion:
    """Edition, version and source of this build"""
    return nodes.describe_version(caller.node)


@serves(node.CONFIG, operation="node.describe", name="node.client_config")
async def client_config(caller: Caller) -> Reply:
    """Feature flags for clients, and data about the node"""
    return Reply(nodes.client_config(caller.node), headers=ANY_ORIGIN)


@route("GET", "/api/v1/openapi.json", operation="node.describe", name="node.openapi_document")
async def openapi_document(caller: Caller) -> Reply:
    """This description of the interface (OpenAPI 3.1)"""
    flags = caller.node.config.flags
    off = frozenset(route.flag for route in TABLE if route.flag and not flags.on(route.flag))
    return Reply(openapi.make_document(off), headers=ANY_ORIGIN)


@route("GET", "/metrics", operation="node.metrics", name="node.metrics", media=MEDIA, errors=(404,), cost=0)
async def metrics(caller: Caller, request: Request) -> Reply:
    """Counters for Prometheus; on this machine, or with the admin secret in X-Admin-Secret"""
    figures = await nodes.read_gauges(caller, is_loopback(request), request.headers.get("x-admin-secret"))
    return Reply(caller.node.metrics.render(figures), content_type=MEDIA)


@route(
    "GET",
    "/source.tar.gz",
    operation="node.source",
    name="node.source",
    media="application/gzip",
    others=(206, 304),
    cost=10,
)
async def source(caller: Caller) -> Reply:
    """The source code that this node runs (AGPL-3.0-or-later, section 13)"""
    archive = await nodes.pack_source()
    return Reply(archive, content_type="application/gzip", etag=f'"{hex_digest(archive)}"')


@route("GET", "/robots.txt", operation="page.static", name="node.robots", media="text/plain")
async def robots(caller: Caller) -> Reply:
    """Rules for crawlers, which exclude them from the API"""
    return Reply(ROBOTS, content_type="text/plain; charset=utf-8", headers={"cache-control": "max-age=86400"})


def _health(health: Health) -> Reply:
    return Reply(health, status=503 if health.status == "unavailable" else 200)
