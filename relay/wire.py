"""HTTP/1.1 read strictly (RFC 9112): where a proxy in front of us and Sanic could read one request as two,
or as another one, it is refused and the connection ends.

Sanic reads a header line wherever it finds a CRLF and splits it at the first colon. By itself it takes
`Content-Length : 5` for an unknown header, a bare line feed for a part of a value, `0x5` for a chunk size.
"""

from __future__ import annotations

import re
from typing import Any

from sanic.exceptions import SanicException
from sanic.http.http1 import Http
from sanic.request import Request
from sanic.server.protocols.websocket_protocol import WebSocketProtocol

_TOKEN = rb"[!#$%&'*+\-.^_`|~0-9A-Za-z]+"
_HEAD = re.compile(_TOKEN + rb" [!-~]+ HTTP/1\.[01](?:\r\n" + _TOKEN + rb":[^\0\r\n]*)*")
_DIGITS = {10: re.compile(r"[0-9]{1,18}[ \t]*"), 16: re.compile(r"[0-9A-Fa-f]{1,15}[ \t]*")}


class StrictRequest(Request):
    """A request that knows whether it was well formed; `relay.app` answers 400 where it was not.

    An address that cannot be read is replaced by `*`, because an error in this constructor would end the
    connection without any answer.
    """

    __slots__ = ("well_formed",)

    def __init__(self, url_bytes: bytes, **named: Any) -> None:
        readable = True
        try:
            super().__init__(url_bytes, **named)
        except SanicException:
            readable = False
            super().__init__(b"*", **named)
        self.well_formed = readable and _well_formed(self)


class _StrictHttp(Http):
    __slots__ = ()

    @staticmethod
    def _safe_int(value: str, base: int = 10) -> int:
        """Content-Length and chunk sizes: digits alone."""
        if not _DIGITS[base].fullmatch(value):
            raise ValueError(value)
        return int(value, base)

    async def read(self) -> Any:
        """The next bytes of the body. Of one with a length everything that has arrived is handed over as it
        is; Sanic would copy it twice."""
        kind: Any = self.request_body  # True: it has a length
        sized = self.request_bytes_left if kind is True else 0
        if not sized or self.expecting_continue:
            return await super().read()
        if not self.recv_buffer:
            await self._receive_more()
        arrived: bytearray = self.recv_buffer
        if len(arrived) > sized:
            return await super().read()  # the next request has begun to arrive behind the body
        self.recv_buffer = self.protocol.recv_buffer = bytearray()
        self.request_bytes_left = sized - len(arrived)
        return arrived

    async def error_response(self, exception: Exception) -> None:
        """Sanic would answer, fail at that, and log the failure, when the client has hung up."""
        transport = self.protocol.transport
        if transport is None or transport.is_closing():
            self.keep_alive, self.request_body = False, None
            return
        await super().error_response(exception)


class StrictProtocol(WebSocketProtocol):
    """Sanic's connection with the reader above."""

    HTTP_CLASS = _StrictHttp


def _well_formed(request: Request) -> bool:
    headers, old = request.headers, request.version == "1.0"
    hosts = len(headers.getall("host", ()))
    return (
        _HEAD.fullmatch(request.head) is not None
        and (hosts == 1 or (old and not hosts))
        and not (old and "transfer-encoding" in headers)
    )
