"""A WebSocket to a server. It is opened by the same rules as any request (`svc.http.client`): with the same
proxy, checks of certificate and origin, and a signature. The `websockets` library encodes and decodes the
frames.

One thread receives, and only this thread uses the connection. Other threads may send and close."""

from __future__ import annotations

import selectors
import socket
from collections import deque
from contextlib import suppress
from threading import Lock
from time import monotonic

import httpcore
import httpx
from websockets.client import ClientProtocol
from websockets.datastructures import Headers
from websockets.exceptions import InvalidHandshake
from websockets.frames import Frame, Opcode
from websockets.http11 import Response
from websockets.protocol import OPEN
from websockets.typing import Subprotocol
from websockets.uri import parse_uri

from localstore.core.errors import Cancelled, ServerMisbehaved, ServerUnreachable
from localstore.core.model.limits import KIB, MIB
from localstore.core.paths import terminal_safe
from svc.http import bounds
from svc.http.client import Http
from svc.http.connection import COUNTED, CountedStream
from svc.http.connection_limits import NoLimits

PING_SECONDS, PONG_SECONDS = 20.0, 10.0  # between two questions for a sign of life; for one to come
SENT_SECONDS, HEARD_SECONDS = 1.0, 3.0  # the same after something was sent, to which nothing came
SLOWEST = 4_000  # bytes a second that a line carries at least: a sign of life waits behind what was sent
SEND_SECONDS = 10.0  # for what is sent to be taken
MESSAGE_BYTES = 4 * MIB
READ_BYTES = 64 * KIB
AT_ONCE = 0.001  # seconds in which a read tells whether something is there already
_REMEDY = "check your network"


class WebSocket:
    """An open WebSocket, made by `open_socket`. Raises Cancelled if the connection is closed already."""

    def __init__(self, origin: str, protocol: ClientProtocol, response: httpx.Response) -> None:
        self.origin = origin
        self._protocol, self._response = protocol, response
        self._stream: httpcore.NetworkStream = response.extensions["network_stream"]
        self._wake, self._woken = socket.socketpair()
        self._wake.setblocking(False)
        self._selector = selectors.DefaultSelector()
        try:
            self._selector.register(self._stream.get_extra_info("socket"), selectors.EVENT_READ)
        except ValueError:  # another thread has closed the client meanwhile
            for part in (self._wake, self._woken, self._selector):
                part.close()
            raise Cancelled(f"the socket to {origin} was closed") from None
        self._selector.register(self._woken, selectors.EVENT_READ)
        self._outgoing: deque[bytes] = deque()
        self._messages: deque[str] = deque()
        self._parts: list[bytes] = []
        self._unheard = 0  # bytes sent since something came
        self._more = True  # bytes may be here already that the socket will not announce
        self._ping_at, self._pong_by = monotonic() + PING_SECONDS, 0.0  # 0: no answer is due
        self._closed = self._ended = False
        self._receiving = Lock()

    def send(self, text: str) -> None:
        """Queue a message. The receiving thread sends it. Any thread may call this method."""
        self._outgoing.append(text.encode())
        self._rouse()

    def close(self) -> None:
        """Close the socket, so that the receiving thread raises Cancelled. Any thread may call this
        method."""
        self._closed = True
        self._rouse()
        if self._receiving.acquire(blocking=False):
            try:
                self._end()
            finally:
                self._receiving.release()

    def receive(self, seconds: float | None = None) -> str | None:
        """Return the next message; None if none came for `seconds`. One thread must call this method again
        and again, because it also sends messages and pings. Raises Cancelled after `close`. Raises
        ServerUnreachable if the server closes the socket or does not answer pings, or if a bound ends."""
        until = None if seconds is None else monotonic() + seconds
        with self._receiving:
            held = bounds.current()
            try:
                for bound in held:
                    bound.attach(self._rouse)
                return self._next(until, held)
            except bounds.Stopped as stop:
                raise stop.bound.error(self.origin, _REMEDY) from None
            except (httpcore.NetworkError, httpcore.TimeoutException, OSError, ValueError) as error:
                self._end()
                why = terminal_safe(str(error)[:200]) or type(error).__name__
                raise self._lost_error(f"broke off ({why})") from None
            except (ServerUnreachable, ServerMisbehaved, Cancelled):
                self._end()
                raise
            finally:
                for bound in held:
                    bound.detach(self._rouse)

    def _next(self, until: float | None, held: bounds.Bounds) -> str | None:
        while True:
            if self._closed:
                raise Cancelled(f"the socket to {self.origin} was closed")
            self._flush()
            if self._messages:
                return self._messages.popleft()
            self._require_open()
            bounds.check(held)
            now = monotonic()
            if until is not None and now >= until:
                return None
            self._beat(now)
            if self._wait_readable(now, until):
                self._read()

    def _flush(self) -> None:
        """Send the queued messages, and frames of the protocol such as pongs."""
        while self._outgoing and self._protocol.state is OPEN:
            text = self._outgoing.popleft()
            self._unheard += len(text)
            self._ping_at = min(self._ping_at, monotonic() + SENT_SECONDS)
            self._protocol.send_text(text)
        for data in self._protocol.data_to_send():
            if data:
                self._stream.write(data, SEND_SECONDS)

    def _require_open(self) -> None:
        """Raise ServerUnreachable if the server has closed the socket. Called when no message that arrived
        earlier is left to return."""
        if self._protocol.state is not OPEN:
            closed = self._protocol.close_rcvd
            why = terminal_safe(closed.reason[:200]) if closed else ""
            raise self._lost_error(f"was closed by the server{f' ({why})' if why else ''}")

    def _beat(self, now: float) -> None:
        """Send a ping if it is due. Raises ServerUnreachable if the last ping was not answered in time."""
        if self._pong_by:
            if now >= self._pong_by:
                raise self._lost_error("gives no sign of life")
        elif now >= self._ping_at:
            self._protocol.send_ping(b"")
            patience = HEARD_SECONDS + self._unheard / SLOWEST if self._unheard else PONG_SECONDS
            self._ping_at, self._pong_by = now + PING_SECONDS, now + patience
            self._flush()

    def _wait_readable(self, now: float, until: float | None) -> bool:
        """Wait until data can be read. Also ends when another thread wakes this one, or when the next ping or
        the timeout is due. Returns whether data can be read."""
        if self._more:
            return True
        moments = [self._pong_by or self._ping_at, *([until] if until is not None else [])]
        ready = self._selector.select(max(0.0, min(moments) - now))
        objects = [key.fileobj for key, _ in ready]
        if self._woken in objects:
            self._woken.recv(KIB)
        return any(ready_object is not self._woken for ready_object in objects)

    def _read(self) -> None:
        """Read what has arrived, without waiting, and handle its frames. Raises ServerUnreachable if the
        connection is closed, ServerMisbehaved for bytes that are not WebSocket frames."""
        try:
            data = self._stream.read(READ_BYTES, AT_ONCE)
        except httpcore.ReadTimeout:
            self._more = False
            return
        if not data:
            self._protocol.receive_eof()
            raise self._lost_error("was closed by the server")
        self._more = True
        self._pong_by, self._unheard, self._ping_at = 0.0, 0, monotonic() + PING_SECONDS
        self._protocol.receive_data(data)
        for event in self._protocol.events_received():
            if isinstance(event, Frame):
                self._take(event)
        if self._protocol.parser_exc is not None:
            with suppress(OSError, httpcore.NetworkError, httpcore.TimeoutException):
                self._flush_last()
            why = terminal_safe(str(self._protocol.parser_exc)[:200])
            raise ServerMisbehaved(f"{self.origin} does not speak WebSocket as it should ({why})")

    def _take(self, frame: Frame) -> None:
        """Add a frame to the message that it belongs to. The library has already checked the frame's order
        and size."""
        if frame.opcode not in (Opcode.TEXT, Opcode.BINARY, Opcode.CONT):
            return
        self._parts.append(bytes(frame.data))
        if not frame.fin:
            return
        whole, self._parts = b"".join(self._parts), []
        try:
            self._messages.append(whole.decode())
        except UnicodeDecodeError:
            raise ServerMisbehaved(f"{self.origin} sent a message that is not UTF-8") from None

    def _flush_last(self) -> None:
        for data in self._protocol.data_to_send():
            self._stream.write(data, AT_ONCE)

    def _rouse(self) -> None:
        with suppress(OSError):  # it is full, or nobody waits any more
            self._wake.send(b"!")

    def _lost_error(self, what: str) -> ServerUnreachable:
        return ServerUnreachable(f"the socket to {self.origin} {what}; {_REMEDY}")

    def _end(self) -> None:
        """Close the connection, after a closing frame if that can be sent without blocking."""
        if self._ended:
            return
        self._closed = self._ended = True
        with suppress(OSError, ValueError, httpcore.NetworkError, httpcore.TimeoutException, bounds.Stopped):
            if self._protocol.state is OPEN:
                self._protocol.send_close(1000)
                self._flush_last()
        self._selector.close()
        self._response.close()
        self._wake.close()
        self._woken.close()


def open_socket(http: Http, path: str, subprotocol: str) -> WebSocket:
    """Open a WebSocket at `path` and return it. Deadlines and cancels of this thread (`svc.http.bounds`)
    apply while the WebSocket is being opened, but not later.

    Raises the errors of any request. Raises ServerMisbehaved if the server redirects, or does not open a
    WebSocket."""
    uri = parse_uri(f"ws{http.origin.removeprefix('http')}{path}")
    offered = [Subprotocol(subprotocol)]
    protocol = ClientProtocol(uri, subprotocols=offered, state=OPEN, max_size=MESSAGE_BYTES)
    headers_to_send = {
        name: value for name, value in protocol.connect().headers.raw_items() if name.lower() != "host"
    }
    response = http.upgrade(path, headers_to_send)
    try:
        headers = Headers(response.headers.multi_items())
        protocol.process_response(Response(response.status_code, "", headers))
        if protocol.subprotocol != subprotocol:
            raise ServerMisbehaved(f"{http.origin} opens a socket that does not speak {subprotocol}")
    except InvalidHandshake as error:
        response.close()
        why = terminal_safe(str(error)[:200])
        raise ServerMisbehaved(f"{http.origin} opens no WebSocket ({why}); check the address") from None
    except BaseException:
        response.close()
        raise
    counted: CountedStream = response.extensions["network_stream"].get_extra_info(COUNTED)
    counted.release()
    counted.limits = NoLimits()
    return WebSocket(http.origin, protocol, response)
