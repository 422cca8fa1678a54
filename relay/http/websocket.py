"""WebSockets whose clients cannot use up the relay's time and memory.

Sanic's own WebSockets create a task for each message, queue all messages and answer every ping. Here a socket
is read only when its handler waits for a message, a kibibyte at a time. Every frame takes tokens of a rate
limit, so that a client that sends many frames has to wait, and other clients do not.

The `websockets` library parses and writes the frames.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from time import monotonic
from typing import Any

from sanic.exceptions import RequestCancelled
from websockets.frames import CloseCode, Frame, Opcode
from websockets.protocol import CLOSED, OPEN
from websockets.server import ServerProtocol

from localstore.core.errors import RateLimited
from localstore.core.model.limits import KIB, MIB, SOCKET_MESSAGE

MESSAGE_BYTES = SOCKET_MESSAGE  # for every kind of message
FRAGMENTS = 16  # of one message
STEP = 1 * KIB  # bytes parsed before other requests have a turn: 170 frames at most
PING_SECONDS = 20.0  # between two pings; a client that is silent for twice as long is cut off
CLOSE_SECONDS, CLOSE_BYTES = 2.0, 1 * MIB  # that a client may take to end its side
OF_A_SESSION, OF_AN_ADDRESS, AT_ONCE = 32, 128, 4096  # open sockets
RETRY_SECONDS = 5

Toll = Callable[[int], float]  # number of frames → seconds to wait before reading more
_DATA = (Opcode.TEXT, Opcode.BINARY, Opcode.CONT)


@lru_cache(maxsize=16)
def _frame_of(text: bytes) -> bytes:
    """A message encoded as a WebSocket frame. It is cached, because one message may be sent to hundreds of
    sockets."""
    return Frame(Opcode.TEXT, text).serialize(mask=False)


class Sockets:
    """The number of open sockets of each session and each address."""

    def __init__(self) -> None:
        self._open: Counter[str] = Counter()

    @contextlib.contextmanager
    def one(self, session_id: str, address: str) -> Iterator[None]:
        """A context that counts one more socket of the session and address. Raises RateLimited if too many
        are open."""
        keys = {f"session {session_id}": OF_A_SESSION, f"address {address}": OF_AN_ADDRESS, "": AT_ONCE}
        for key, most in keys.items():
            if self._open[key] >= most:
                raise RateLimited(f"too many sockets are open; close some of the {most}", RETRY_SECONDS, most)
        self._open.update(keys.keys())
        try:
            yield
        finally:
            self._open.subtract(keys.keys())
            for key in keys:
                if self._open[key] <= 0:
                    del self._open[key]


class Socket:
    """An open WebSocket. `connection`: Sanic's connection, which calls the methods at the end of this class.
    `protocol`: parses and writes the frames. `toll`: a function that is called with the number of frames that
    were just read, and returns the seconds to wait before more is read."""

    def __init__(self, connection: Any, protocol: ServerProtocol, toll: Toll) -> None:
        self.ws_proto, self.loop = protocol, asyncio.get_running_loop()  # read by Sanic at shutdown
        self._connection, self._transport, self._toll = connection, connection.transport, toll
        self._arrived = bytearray()
        self._frames: deque[Frame] = deque()
        self._fragments: list[bytes] = []  # of the message that is not complete
        self._is_text = False
        self._arrival: asyncio.Future[None] | None = None
        self._disconnected: asyncio.Future[None] = self.loop.create_future()
        self._closing, self._closing_bytes_left = False, CLOSE_BYTES
        self._last_heard_at = monotonic()
        self._ping_timer = self.loop.call_later(PING_SECONDS, self._ping)

    async def receive(self) -> str | bytes | None:
        """The next message; None if the socket has closed. Only one task at a time may wait for it."""
        while True:
            while self._frames:
                message = self._assemble(self._frames.popleft())
                if message is not None:
                    return message
            if self._closing or self.ws_proto.state is not OPEN or self._disconnected.done():
                await self._flush()
                return None
            if not self._arrived:
                await self._wait()
                continue
            await self._read()

    async def send(self, *texts: bytes) -> None:
        """Send messages, waiting for a slow reader. Raises ConnectionError when the socket has closed."""
        if self.ws_proto.state is not OPEN:
            raise ConnectionError("the socket is closed")
        for text in texts:
            self.ws_proto.send_text(text)
        await self._flush()

    def send_at_once(self, texts: Sequence[bytes]) -> bool:
        """Send messages if the client has read everything sent before. Otherwise, and if the socket is
        closed, returns False and sends nothing."""
        if (
            self.ws_proto.state is not OPEN
            or self._transport.is_closing()
            or self._transport.get_write_buffer_size()
        ):
            return False
        self._transport.write(b"".join([*self.ws_proto.data_to_send(), *map(_frame_of, texts)]))
        return True

    async def close(self, code: int = CloseCode.NORMAL_CLOSURE) -> None:
        """Send a close frame, give the client a moment to answer it, and end the connection."""
        if self._closing:
            return
        self._closing = True
        self._arrived.clear()
        self._ping_timer.cancel()
        self._wake()
        if self.ws_proto.close_rcvd is not None:
            self.end_connection()
            return
        with contextlib.suppress(ConnectionError, TimeoutError):
            async with asyncio.timeout(CLOSE_SECONDS):
                if self.ws_proto.state is OPEN:
                    self.ws_proto.send_close(code)
                    await self._flush()
                self._transport.resume_reading()
                await asyncio.shield(self._disconnected)
        self._transport.abort()

    async def _read(self) -> None:
        """Parse some of the arrived bytes and answer control frames."""
        protocol = self.ws_proto
        protocol.receive_data(bytes(self._arrived[:STEP]))
        del self._arrived[:STEP]
        frames = [event for event in protocol.events_received() if isinstance(event, Frame)]
        self._frames += [frame for frame in frames if frame.opcode in _DATA]
        await self._flush()
        await asyncio.sleep(self._toll(len(frames)))

    def _assemble(self, frame: Frame) -> str | bytes | None:
        """The message that is complete with this WebSocket frame; None if more of its fragments follow."""
        if frame.opcode is not Opcode.CONT:
            self._is_text = frame.opcode is Opcode.TEXT
        self._fragments.append(bytes(frame.data))
        if not frame.fin:
            if len(self._fragments) >= FRAGMENTS:
                self._fail(CloseCode.POLICY_VIOLATION, f"a message has at most {FRAGMENTS} fragments")
            return None
        message, self._fragments = b"".join(self._fragments), []
        if not self._is_text:
            return message
        try:
            return message.decode()
        except UnicodeDecodeError:
            self._fail(CloseCode.INVALID_DATA, "the text is not UTF-8")
            return None

    def _fail(self, code: CloseCode, reason: str) -> None:
        self._frames.clear()
        self._fragments.clear()
        if self.ws_proto.state is OPEN:
            self.ws_proto.send_close(code, reason)

    async def _wait(self) -> None:
        """Wait until bytes have arrived or the client has disconnected."""
        self._arrival = self.loop.create_future()
        self._transport.resume_reading()
        try:
            await self._arrival
        finally:
            self._arrival = None

    async def _flush(self) -> None:
        """Write the pending output of the library. Raises ConnectionError when the client has
        disconnected."""
        data = b"".join(self.ws_proto.data_to_send())
        if not data:
            return
        if self._transport.is_closing():
            raise ConnectionError("the client has disconnected")
        try:
            await self._connection.send(data)
        except RequestCancelled:
            raise ConnectionError("the client has disconnected") from None

    def _ping(self) -> None:
        """Send a ping; disconnect the client if it has been silent for too long."""
        if self._arrived:
            self._last_heard_at = monotonic()  # the client waits for us
        if monotonic() - self._last_heard_at > 2 * PING_SECONDS:
            self._transport.abort()
            return
        self._ping_timer = self.loop.call_later(PING_SECONDS, self._ping)
        if self.ws_proto.state is OPEN and not self._transport.get_write_buffer_size():
            self.ws_proto.send_ping(b"")
            self._transport.write(b"".join(self.ws_proto.data_to_send()))

    def _wake(self) -> None:
        if self._arrival is not None and not self._arrival.done():
            self._arrival.set_result(None)

    # --- called by the connection

    def data_received(self, data: bytes) -> None:
        self._last_heard_at = monotonic()
        if self._closing:
            self._last_received(data)
            return
        self._arrived += data
        self._transport.pause_reading()
        self._wake()

    def _last_received(self, data: bytes) -> None:
        """Parse bytes that arrive after the server's close frame, within limits, until the client's close
        frame."""
        self._closing_bytes_left -= len(data)
        if self._closing_bytes_left < 0:
            self._transport.abort()
        elif len(data) <= STEP and self.ws_proto.state is not CLOSED:
            self.ws_proto.receive_data(data)
            self.ws_proto.events_received()
            if self.ws_proto.close_rcvd is not None:
                self._close_transport()

    def eof_received(self) -> bool:
        return False  # the transport closes

    def connection_lost(self, _: Exception | None) -> None:
        self._ping_timer.cancel()
        self._arrived.clear()
        if not self._disconnected.done():
            self._disconnected.set_result(None)
        self._wake()

    def end_connection(self, _: int = CloseCode.NORMAL_CLOSURE) -> None:
        self._close_transport()
        self.loop.call_later(CLOSE_SECONDS, self._transport.abort)

    def _close_transport(self) -> None:
        # Only once: after two, asyncio's TLS transport ignores an abort.
        if not self._transport.is_closing():
            self._transport.close()
