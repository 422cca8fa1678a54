"""Runs a serving node: opens everything, answers requests, and closes everything again in an order that loses
nothing.

    async with serving(config, socket) as node: ...

At the end of the context, `/readyz` answers 503, no new connections are accepted, running requests finish
within a time limit, and sockets close. Then the hub (`relay.events.hub`), the jobs, the object store, the
database and the connection to the signer close. Sanic's worker manager is not used, because it left orphaned
processes when it was killed.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import os
import signal
import socket
import ssl
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

from sanic import Sanic
from sanic.application.state import ApplicationServerInfo
from sanic.http.constants import HTTP

from relay.base import edition, git
from relay.base.environment import StartRefused
from relay.base.logs import logger
from relay.base.metrics import Metrics
from relay.capacity.limiter import Limiter
from relay.config import Config
from relay.db.engine import connect
from relay.domain.access import access_ends
from relay.domain.access import request as access_requests
from relay.domain.attention import follow as attention
from relay.domain.catalog import dependents
from relay.domain.git import serving as git_serving
from relay.domain.merging import auto
from relay.domain.proposal import branches
from relay.domain.upkeep import upkeep
from relay.domain.webhook import delivery as webhook_delivery
from relay.domain.webhook import follow as webhooks
from relay.events.followers import Followers
from relay.events.hub import Hub
from relay.events.jobs import Jobs
from relay.http import app as http
from relay.http.wire import StrictProtocol
from relay.memory.lanes import Lanes
from relay.node import Node
from relay.objects.place import open_packs
from relay.objects.store import ObjectStore
from relay.outbound.client import Outbound
from relay.outbound.identity_provider import Providers
from relay.outbound.reach import Reach
from relay.run.admin import Admin
from relay.run.maintenance import Maintenance
from relay.signing.client import Signer
from relay.signing.process import Child, is_served
from relay.ssh import host_key
from relay.ssh.door import SshDoor

NOTICE_SECONDS = 1.0  # strict mode: how long a proxy may see the 503 of /readyz before we stop accepting
DRAIN_SECONDS = 20.0
BACKLOG = 512
COLLECTED_AFTER = 10_000  # new objects: a batch of updates makes thousands that stay, without cycles


def bind(host: str, port: int) -> socket.socket:
    """A bound TCP socket that does not listen yet. Port 0 chooses a free port."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    bound = socket.socket(family, socket.SOCK_STREAM)
    bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    bound.bind((host, port))
    bound.setblocking(False)
    return bound


async def serve(config: Config, bound: socket.socket, ready: Callable[[], None]) -> None:
    """Serve until SIGTERM or SIGINT. `ready` is called once requests are answered."""
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    lines: list[str] = []
    async with serving(config, bound, lines.append):
        gc.collect()
        gc.freeze()  # objects that live until the end would cost 50 ms at each full collection
        gc.set_threshold(COLLECTED_AFTER)
        ready()
        for line in lines:
            print(line, flush=True)
        await stop.wait()
        logger().info("stopping")


@contextlib.asynccontextmanager
async def serving(
    config: Config, bound: socket.socket, say: Callable[[str], None] = lambda line: None
) -> AsyncIterator[Node]:
    """A context in which a node answers requests on `bound`. The node's data folder exists and its database
    is migrated. `say`: called with lines for the operator."""
    tls = _tls(config.tls)
    if git.find_program() is None:
        say("git is not installed here, so nobody can clone with git; svc needs none")
    async with _own_signer(config) as signer, _open(config) as node:
        app = http.build(node)
        os.environ["SANIC_IGNORE_PRODUCTION_WARNING"] = "1"  # an advice to its own developers, on a terminal
        server: Any = await app.create_server(
            sock=bound,
            protocol=StrictProtocol,
            return_asyncio_server=True,
            backlog=BACKLOG,
            ssl=tls,
        )
        if server is None:
            raise RuntimeError("no server was made")
        app.state.server_info.append(ApplicationServerInfo({"version": HTTP.VERSION_1}))  # no Alt-Svc header
        await server.startup()
        if signer is not None:
            await signer.wait_until_it_listens()
        await server.start_serving()
        node.renderer.start()
        node.templates.start()
        try:
            async with _over_ssh(node, app, server.connections, say):
                yield node
        finally:
            node.stopping = True
            await asyncio.sleep(0 if config.dev else NOTICE_SECONDS)
            server.close()
            await _drain(server.connections)
            Sanic.unregister_app(app)


@contextlib.asynccontextmanager
async def _own_signer(config: Config) -> AsyncIterator[Child | None]:
    """A context that starts a signer for a development node and yields it. Yields None for any other node,
    and if another process already serves the folder's keys. The signer may still be starting; the node opens
    meanwhile."""
    if not config.dev or (config.shared and await is_served(config.data)):
        yield None
        return
    child = await Child.start(config.data)
    try:
        yield child
    finally:
        await child.stop()


@contextlib.asynccontextmanager
async def _open(config: Config) -> AsyncIterator[Node]:
    """A context with the opened resources of a node. They are closed in reverse order, even if opening one of
    them fails."""
    async with contextlib.AsyncExitStack() as stack:
        signer = Signer(config.data)
        stack.push_async_callback(signer.close)
        db = connect.make_database(config.database_url)
        stack.push_async_callback(db.close)
        await db.open()
        objects = ObjectStore(config.data, db, await open_packs(config.storage), quota=config.quota)
        stack.push_async_callback(objects.close)
        reach, agent = Reach.of(config.outbound_allow, dev=config.dev), f"svc-relay/{edition.VERSION}"
        outbound = Outbound(reach, agent)
        stack.callback(outbound.close)
        providers = Providers(config.providers, reach, agent)
        stack.callback(providers.close)
        lanes = Lanes()
        stack.callback(lanes.close)
        node = Node(
            config=config,
            db=db,
            objects=objects,
            signer=signer,
            hub=Hub(db),
            jobs=Jobs(db),
            followers=Followers(db),
            lanes=lanes,
            limiter=Limiter(enabled=config.rate_limits),
            metrics=Metrics(),
            outbound=outbound,
            providers=providers,
        )
        stack.callback(node.share.close)
        stack.push_async_callback(node.renderer.close)
        stack.push_async_callback(node.templates.close)
        stack.push_async_callback(node.workers.close)
        maintenance = Maintenance(config.data, db, objects, serving=True)
        stack.push_async_callback(maintenance.stop)
        upkeep.register(node, maintenance.start_daily)
        branches.register(node)
        access_requests.register(node)
        dependents.register(node)
        auto.register(node)
        git_serving.register(node)
        node.followers.register(access_ends.NAME, access_ends.follow, access_ends.KINDS)
        webhook_delivery.register(node)
        node.followers.register(webhooks.NAME, webhooks.make_follower(node), webhooks.KINDS)
        node.followers.register(attention.NAME, attention.follow, attention.KINDS, attention.BATCH_SIZE)
        await node.jobs.start()
        stack.push_async_callback(node.jobs.stop)
        await node.hub.start()
        stack.push_async_callback(node.hub.stop)
        await node.followers.start()
        stack.push_async_callback(node.followers.stop)
        admin = Admin(config.data, maintenance)
        stack.push_async_callback(admin.stop)
        await admin.start()
        yield node


@contextlib.asynccontextmanager
async def _over_ssh(
    node: Node, app: Any, connections: set[Any], say: Callable[[str], None]
) -> AsyncIterator[None]:
    """A context that serves the app over SSH if TR_SSH_PORT is set."""
    settings = node.config.ssh
    if settings is None:
        yield
        return
    host_key.require_asyncssh()
    from relay.ssh.front import Front  # it needs asyncssh

    front = Front(node, SshDoor(app, connections), settings)
    try:
        say(await front.start())
        yield
    finally:
        await front.stop()


async def _drain(connections: set[Any]) -> None:
    """Let running answers finish for a while. Idle connections are closed at once. Connections whose answers
    still run at the end are closed by force."""
    loop = asyncio.get_running_loop()
    until = loop.time() + DRAIN_SECONDS
    while connections and loop.time() < until:
        for connection in list(connections):
            connection.close_if_idle()
        await asyncio.sleep(0.02)
    for connection in list(connections):
        connection.abort()


def _tls(files: tuple[Path, Path] | None) -> ssl.SSLContext | None:
    if files is None:
        return None
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    try:
        context.load_cert_chain(*files, password=_refuse_password)
    except (OSError, ValueError) as error:  # ssl.SSLError is an OSError
        reason = getattr(error, "reason", None) or getattr(error, "strerror", None) or str(error)
        raise StartRefused(f"{files[0]} and {files[1]} are no certificate with its key: {reason}") from None
    return context


def _refuse_password() -> str:
    """Called for a key that is encrypted. Without it the library asks for the password on the terminal."""
    raise ValueError("the key is encrypted")
