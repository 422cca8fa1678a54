"""Routes of the live frontier of a branch, and of events as they happen, over a WebSocket or by polling."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from functools import partial

from sanic.request import Request

from localstore.core.model import live, sync
from localstore.core.model.limits import KIB, UPDATE_BATCH_BYTES
from localstore.core.model.live import (
    UpdateAnswers,
    UpdatesRequest,
)
from localstore.core.model.sync import PollAnswer, PollRequest
from relay.caller import Caller, View
from relay.domain.live import lane
from relay.domain.live import live as live_text
from relay.domain.live import sync as syncing
from relay.domain.live.sync import Conversation
from relay.gate.gate import on_socket
from relay.http.routing import behind, route, serves
from relay.http.websocket import Socket

serves_text = behind("TR_REPO_LIVE_TEXT")

ENVELOPE = 4 * KIB  # of a batch beside its updates
SEND_SECONDS = 30.0  # for one message; a client that does not read it in time is cut off

serves_text(live.BOOTSTRAP, operation="live.bootstrap", errors=(409,))(live_text.bootstrap)
serves_text(live.LANES, operation="live.lanes", name="live.lanes")(lane.read)
serves_text(live.PROOF_CONTEXT, operation="live.proof_context")(live_text.proof_context)


@serves_text(
    live.UPDATES,
    operation="live.updates",
    max_body=UPDATE_BATCH_BYTES + ENVELOPE,
    errors=(409, 507),
)
async def updates(view: View, branch: str, body: UpdatesRequest) -> UpdateAnswers:
    """Send one or several signed updates and get an answer to each; an acknowledged update is durable"""
    return await live_text.accept(view, branch, body.batch())


@route("GET", sync.SOCKET_PATH, operation="sync.listen", name="sync.listen")
async def listen(caller: Caller, request: Request, socket: Socket) -> None:
    """Events of repositories and frames of branches as they happen (WebSocket, subprotocol svc-sync.v1)"""
    syncing.require_own_origin(caller, request.headers.getall("origin", []))

    async def send(texts: Sequence[bytes]) -> None:
        if socket.send_at_once(texts):
            return
        try:
            async with asyncio.timeout(SEND_SECONDS):
                await socket.send(*texts)
        except (ConnectionError, TimeoutError) as error:
            request.transport.abort()  # type: ignore[attr-defined]  # no farewell waits for such a reader
            raise ConnectionError(str(error)) from None

    async def receive() -> str | bytes | None:
        try:
            return await socket.receive()
        except ConnectionError:
            return None

    await Conversation(caller, send, socket.send_at_once, receive, partial(on_socket, caller)).run()


@serves(sync.POLL, operation="sync.poll", name="sync.poll")
async def poll(caller: Caller, body: PollRequest) -> PollAnswer:
    """Events of repositories and frames of branches since the last poll; waits until there are some"""
    if not body.wait and not body.channels:
        return await syncing.poll(caller, body)
    session = caller.principal.session_id if caller.principal else ""
    with caller.node.sockets.one(session, caller.network):
        return await syncing.wait(caller, body, partial(on_socket, caller))
