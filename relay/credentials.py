"""Who sends a request. Until sessions are wired in, everybody is anonymous."""

from __future__ import annotations

from sanic.request import Request

from relay.address import client_address
from relay.body import Incoming
from relay.caller import Caller
from relay.node import Node


async def identify(node: Node, request: Request, incoming: Incoming, body: bytes) -> Caller:
    return Caller(node, None, client_address(request, node.config.proxy_hops))
