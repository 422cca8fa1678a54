"""HTTP/1.1 read strictly (RFC 9112): where a proxy in front of us and Sanic could read one request as two,
or as another one, it is refused and the connection ends.

Sanic reads a header line wherever it finds a CRLF and splits it at the first colon. By itself it takes
`Content-Length : 5` for an unknown header, a bare line feed for a part of a value, `0x5` for a chunk size.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from sanic.exceptions import SanicException
from sanic.helpers import STATUS_CODES
from sanic.http.constants import Stage
from sanic.http.http1 import Http
from sanic.request import Request
from sanic.response import HTTPResponse
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

    async def answer(self, response: HTTPResponse) -> None:
        """Send a whole answer, header and body in one write. Sanic cleans each name and value of a header,
        which took 20 µs of a small answer; here that is left to it where there is something to clean."""
        headers = response.headers
        printable = all(map(str.isprintable, headers.values()))
        if self.expecting_continue or response.status in (204, 304) or not printable:
            await self.request.respond(response)
            await response.send(end_stream=True)
            return
        body = response.body or b""
        if response.content_type is not None:
            headers.setdefault("content-type", response.content_type)
        if not (self.head_only and "content-length" in headers):
            headers["content-length"] = str(len(body))
        headers["connection"] = "keep-alive" if self.keep_alive else "close"
        self.response = response
        await self._send(_head(response.status, headers) + (b"" if self.head_only else body))
        self.stage = Stage.IDLE

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


def _head(status: int, headers: Mapping[str, str]) -> bytes:
    lines = "".join([f"{name}: {value}\r\n" for name, value in headers.items()])
    return b"HTTP/1.1 %d %b\r\n%b\r\n" % (status, STATUS_CODES.get(status, b"UNKNOWN"), lines.encode())


def _well_formed(request: Request) -> bool:
    headers, old = request.headers, request.version == "1.0"
    hosts = len(headers.getall("host", ()))
    return (
        _HEAD.fullmatch(request.head) is not None
        and (hosts == 1 or (old and not hosts))
        and not (old and "transfer-encoding" in headers)
    )
