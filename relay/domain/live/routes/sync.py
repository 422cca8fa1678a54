"""Events as they happen: over a WebSocket, or by polling."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from functools import partial

from sanic.request import Request

from localstore.core.model import sync as endpoints
from localstore.core.model.sync import PollAnswer, PollRequest
from relay.caller import Caller
from relay.domain.live import sync
from relay.domain.live.sync import Conversation
from relay.gate.gate import on_socket
from relay.http.routing import route, serves
from relay.http.websocket import Socket

SEND_SECONDS = 30.0  # for one message; a client that does not read it in time is cut off


@route("GET", endpoints.SOCKET_PATH, operation="sync.listen")
async def listen(caller: Caller, request: Request, socket: Socket) -> None:
    """Events of repositories and frames of branches as they happen (WebSocket, subprotocol svc-sync.v1)"""
    sync.require_own_origin(caller, request.headers.getall("origin", []))

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


@serves(endpoints.POLL, operation="sync.poll")
async def poll(caller: Caller, body: PollRequest) -> PollAnswer:
    """Events of repositories and frames of branches since the last poll; waits until there are some"""
    if not body.wait and not body.channels:
        return await sync.poll(caller, body)
    session = caller.principal.session_id if caller.principal else ""
    with caller.node.sockets.one(session, caller.network):
        return await sync.wait(caller, body, partial(on_socket, caller))
