"""Accepts HTTP connections that come from the process of a session over SSH, not from a network."""

from __future__ import annotations

import asyncio
import socket
from typing import Any

from sanic.models.server_types import Signal
from sanic.server.runners import _build_protocol_kwargs

from relay.http.wire import StrictProtocol


class _Handed(StrictProtocol):
    """A connection from the process of a session. `address`: the address of the SSH client, by which limits
    are counted."""

    __slots__ = ("_address", "_counted")

    def __init__(self, address: str, counted: set[Any], **named: Any) -> None:
        super().__init__(**named)
        self._address, self._counted = address, counted

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)  # type: ignore[no-untyped-call]
        assert self.conn_info is not None  # noqa: S101 - it was just made
        self._counted.add(self)
        self.conn_info.client_ip = self._address
        self.conn_info.ctx.handed = True

    def connection_lost(self, exc: Exception | None) -> None:
        self._counted.discard(self)
        super().connection_lost(exc)  # type: ignore[no-untyped-call]


class SshDoor:
    """Accepts connections from processes of SSH sessions as HTTP connections to the relay. `connections`: all
    connections of the relay's HTTP server."""

    def __init__(self, app: Any, connections: set[Any]) -> None:
        self._app, self._connections = app, connections
        self._named = _build_protocol_kwargs(StrictProtocol, app.config)

    async def enter(self, sock: socket.socket, address: str, counted: set[Any]) -> None:
        """Answer the HTTP requests that come from this socket. `address`: the address of the SSH client.
        `counted`: a set that contains the connection until it closes. Raises OSError if the connection cannot
        be set up."""
        loop = asyncio.get_running_loop()

        def make_protocol() -> _Handed:
            return _Handed(
                address,
                counted,
                loop=loop,
                connections=self._connections,
                signal=Signal(),
                app=self._app,
                state={},
                unix=None,
                **self._named,
            )

        await loop.connect_accepted_socket(make_protocol, sock)
