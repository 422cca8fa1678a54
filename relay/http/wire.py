"""A strict HTTP/1.1 reader (RFC 9112). It refuses everything that Sanic and a proxy in front of it could
interpret differently, and ends the connection.

Sanic splits header lines at any CRLF and at the first colon. Alone it would accept `Content-Length : 5` as an
unknown header, a bare line feed as part of a value, and `0x5` as a chunk size. So this module parses heads
first. It still passes a malformed head to Sanic's parser, but the request is refused whatever the result.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping, Sequence
from time import monotonic
from typing import Any, Literal

import msgspec
from sanic.compat import Header
from sanic.exceptions import BadRequest, RequestCancelled, SanicException
from sanic.helpers import STATUS_CODES
from sanic.http.constants import Stage
from sanic.http.http1 import Http
from sanic.request import Request
from sanic.response import HTTPResponse
from sanic.server.protocols.websocket_protocol import WebSocketProtocol
from websockets.protocol import OPEN
from websockets.server import ServerProtocol
from websockets.typing import Subprotocol

from relay.http.chunked_body import ChunkedBody, Malformed
from relay.http.context import Context
from relay.http.turns import PipelineTurns
from relay.http.websocket import MESSAGE_BYTES, Socket, Toll

REQUEST_BUFFER = 256 * 1024  # unread bytes of a connection; then the sender has to wait
FIELDS = 100  # of one head; clients send about twenty
SMALL, SMALL_ARRIVALS, SMALL_PAUSE = 512, 32, 0.02  # bytes; small arrivals of one request without a pause

_NAME = r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+"
_LINE = re.compile(rf"({_NAME}) ([!-~]+) HTTP/1\.([01])")
_FIELD = re.compile(rf"\r\n({_NAME}):([^\r]*)")  # excluding one character is faster than a set
_LENGTH = re.compile(r"[0-9]{1,18}[ \t]*")
_SPACES = " \t"
_CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"
_REASONS = {status: reason.decode() for status, reason in STATUS_CODES.items()}


class StrictRequest(Request):
    """A request that records whether its head was well formed. If it was not, `relay.http.app` answers 400.
    If it is `crowded`, which means more than FIELDS header fields, `relay.http.app` answers 431 and does not
    read them.

    A request target (path and query) that cannot be parsed is replaced by `*`, because an error in this
    constructor would end the connection without an answer.
    """

    __slots__ = ("crowded", "well_formed")

    @staticmethod
    def make_context() -> Any:  # Sanic's type is a SimpleNamespace
        return Context()

    def __init__(self, url_bytes: bytes, well_formed: bool = False, **named: Any) -> None:
        try:
            super().__init__(url_bytes, **named)
            self.well_formed = well_formed
            self.crowded = False
        except SanicException:
            super().__init__(b"*", **named)
            self.well_formed = self.crowded = False


class RequestHead(msgspec.Struct, frozen=True):
    """The head of a well-formed request. `body`: "chunked" for a chunked body, True for a body of `length`
    bytes, None if there is no body."""

    method: str
    target: str
    version: Literal["1.0", "1.1"]
    headers: Header
    body: Literal["chunked", True] | None
    length: int


def read_head(head: bytes) -> RequestHead | None:
    """Parse the head of a request: everything before the empty line. Returns None for a malformed head, for
    one from which two readers could derive different lengths of the body, and for one with an unknown value
    of the header Expect."""
    text = head.decode(errors="surrogateescape")
    line = _LINE.match(text)
    if line is None:
        return None
    fields = _FIELD.findall(text, line.end())
    if line.end() + sum([len(name) + len(value) + 3 for name, value in fields]) != len(text):
        return None  # there is something between the fields
    if text.count("\n") != len(fields) or "\0" in text:
        return None
    method, target, minor = line.groups()
    headers = Header([(name.lower(), value.lstrip(_SPACES)) for name, value in fields])
    old = minor == "0"
    hosts = headers.getall("host", ())
    if len(hosts) != 1 and not (old and not hosts):
        return None
    body: Literal["chunked", True] | None = None
    length = 0
    if "transfer-encoding" in headers:
        if old or headers.getall("transfer-encoding") != ["chunked"] or "content-length" in headers:
            return None
        body = "chunked"
    elif "content-length" in headers:
        (first, *more) = headers.getall("content-length")
        if more or not _LENGTH.fullmatch(first):
            return None
        body, length = True, int(first)
    if body and headers.get("expect", "100-continue").lower() != "100-continue":
        return None
    return RequestHead(method, target, "1.0" if old else "1.1", headers, body, length)


class _StrictHttp(Http):
    __slots__ = ("_answered", "_chunks", "_early")
    recv_buffer: bytearray

    def __init__(self, protocol: Any) -> None:
        super().__init__(protocol)  # type: ignore[no-untyped-call]
        self._answered = False  # whether this connection has answered a request before
        self._early = False  # whether this request arrived before the previous answer
        self._chunks = ChunkedBody()

    def init_for_request(self) -> None:
        """Prepare for the next request; called by Sanic. Records whether bytes of that request arrived before
        the last answer was sent."""
        super().init_for_request()  # type: ignore[no-untyped-call]
        self._early = self._answered and len(self.recv_buffer) > 0

    async def http1_request_header(self) -> None:
        """Wait for the head of a request, then start to handle the request. A pipelined request waits for its
        turn (`relay.http.turns`)."""
        if self._early:
            protocol: Any = self.protocol
            await protocol.turns.wait()
        self._answered = True
        arrived = self.recv_buffer
        end = arrived.find(b"\r\n\r\n")
        while end < 0 and (seen := max(0, len(arrived) - 3)) < self.HEADER_MAX_SIZE:
            await self._receive_more()
            end = arrived.find(b"\r\n\r\n", seen)
        raw = bytes(arrived[:end]) if 0 <= end < self.HEADER_MAX_SIZE else b""
        crowded = raw.count(b"\r\n") > FIELDS
        head = None if crowded else read_head(raw)
        if head is None:
            if crowded:
                del arrived[arrived.find(b"\r\n") : end]  # Sanic's parser spends 4 ms on 2,600 fields
            await super().http1_request_header()  # type: ignore[no-untyped-call]
            refused: Any = self.request
            refused.crowded = crowded
            self.request_body, self.keep_alive = None, False  # refused; nothing after it is read
        else:
            self._begin(head, raw)
            del arrived[: end + 4]

    def _begin(self, head: RequestHead, raw: bytes) -> None:
        protocol: Any = self.protocol
        headers = head.headers
        self.url = head.target
        self.head_only = head.method.upper() == "HEAD"
        connection = headers.getall("connection", None)
        self.keep_alive = connection[-1].lower() == "keep-alive" if connection else head.version == "1.1"
        self.upgrade_websocket = headers.get("upgrade", "").lower() == "websocket"
        request = protocol.request_class(
            head.target.encode("ascii"),
            well_formed=True,
            headers=headers,
            head=raw,
            version=head.version,
            method=head.method,
            transport=protocol.transport,
            app=protocol.app,
        )
        body: Any = head.body
        self.request_body, self.request_bytes, self.request_bytes_left = body, head.length, head.length
        self.expecting_continue = head.body is not None and "expect" in headers
        if body == "chunked":
            self._chunks = ChunkedBody()
        self.request, request.stream = request, self
        protocol.state["requests_count"] += 1
        protocol.small = 0

    async def read(self) -> Any:
        """The next bytes of the body; None at its end."""
        if self.expecting_continue:
            self.expecting_continue = False
            await self._send(_CONTINUE)
        kind: Any = self.request_body  # True: it has a length
        if kind == "chunked":
            return await self._read_chunks()
        if not self.request_bytes_left:
            self.request_body = None
            return None
        return await self._read_sized(self.request_bytes_left)

    async def _read_sized(self, unread: int) -> bytes | bytearray:
        """The received bytes of the body, without a copy; Sanic would copy them twice. `unread`: bytes of the
        body that are still to come."""
        if not self.recv_buffer:
            await self._receive_more()
        arrived = self.recv_buffer
        if len(arrived) > unread:  # the next request has begun to arrive behind the body
            self.request_bytes_left = 0
            part = bytes(arrived[:unread])
            del arrived[:unread]
            return part
        self.recv_buffer = self.protocol.recv_buffer = bytearray()
        self.request_bytes_left = unread - len(arrived)
        return arrived

    async def _read_chunks(self) -> bytes | None:
        chunks = self._chunks
        try:
            while not (part := chunks.read_content(self.recv_buffer)) and not chunks.ended:
                await self._receive_more()
        except Malformed as error:
            self.keep_alive, self.request_body = False, None
            raise BadRequest(str(error)) from None
        if chunks.ended:
            self.request_body = None
        elif chunks.busy:
            await asyncio.sleep(0)
        return part or None

    async def answer(self, response: HTTPResponse) -> None:
        """Send a whole answer, header and body in one write. Only header names and values that need it are
        cleaned. Sanic cleans all of them, which took 20 µs of a small answer."""
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
        """Answer an error as Sanic does. Does nothing if the client has disconnected, because Sanic would try
        to answer, fail and log the failure."""
        transport = self.protocol.transport
        if transport is None or transport.is_closing():
            self.keep_alive, self.request_body = False, None
            return
        await super().error_response(exception)


class StrictProtocol(WebSocketProtocol):
    """Sanic's connection, with the strict HTTP reader of this module. It treats each request as Sanic does,
    but without looking up configuration and signals."""

    HTTP_CLASS = _StrictHttp
    __slots__ = ("_more", "small", "turns")
    transport: Any  # while it is used here there is one
    websocket: Any

    def __init__(self, **named: Any) -> None:
        super().__init__(**named)
        self._more: asyncio.Future[None] | None = None  # bytes to read, for the one task of the connection
        self.turns: PipelineTurns = named["app"].ctx.turns
        self.small = 0  # arrivals of few bytes since the last request began

    def data_received(self, data: bytes) -> None:
        if self.websocket is not None:
            super().data_received(data)  # type: ignore[no-untyped-call]
            return
        self._time = monotonic()
        if len(data) < SMALL:
            self.small += 1
        self.recv_buffer += data
        if len(self.recv_buffer) >= REQUEST_BUFFER and self.transport:
            self.transport.pause_reading()
        if self._more is not None and not self._more.done():
            self._more.set_result(None)

    async def receive_more(self) -> None:
        """Wait for bytes. If the sender sends many small segments, wait until several have arrived, because
        to wake up costs the same for two bytes as for thousands."""
        if self.small > SMALL_ARRIVALS:
            self.transport.pause_reading()
            await asyncio.sleep(SMALL_PAUSE)
        self.transport.resume_reading()
        self._more = self.loop.create_future()
        await self._more

    async def send(self, data: bytes) -> None:
        if not self._can_write.is_set():
            await self._can_write.wait()
        if self.transport.is_closing():
            raise RequestCancelled
        self.transport.write(data)
        self._time = monotonic()

    def close(self, timeout: float | None = None) -> None:
        """Close the connection; if it is a WebSocket, tell the socket that the connection has ended. Called
        when the connection's task ends."""
        if self.websocket is not None:
            self.websocket.end_connection()
        else:
            super().close(timeout)

    async def open_websocket(self, request: Request, subprotocols: Sequence[str], toll: Toll) -> Socket:
        """Answer a request that upgrades the connection to a WebSocket. `toll`: called with the number of
        frames just read; returns the seconds to wait before more is read. Returns the socket. Raises
        SanicException for an invalid request."""
        offered = [Subprotocol(name) for name in subprotocols]
        protocol = ServerProtocol(subprotocols=offered, state=OPEN, max_size=MESSAGE_BYTES)
        answer = protocol.accept(self.sanic_request_to_ws_request(request))
        if answer.status_code != 101:
            raise SanicException("the upgrade request is invalid", answer.status_code)
        await self.send(answer.serialize())
        self.websocket = socket = Socket(self, protocol, toll)
        if self.recv_buffer:  # what came right behind the request
            socket.data_received(bytes(self.recv_buffer))
            self.recv_buffer.clear()
        return socket


def _head(status: int, headers: Mapping[str, str]) -> bytes:
    lines = "\r\n".join(map(": ".join, headers.items()))
    return f"HTTP/1.1 {status} {_REASONS.get(status, 'UNKNOWN')}\r\n{lines}\r\n\r\n".encode()
