"""How long, and with how much, one server may keep a connection of ours busy.

httpx limits the time of a single read or write, which a server that gives or takes a byte now and then never
exceeds. Here each connection counts, from the request on: the head of an answer has to be there HEAD_SECONDS
after its first byte and in HEAD_BYTES, notes of progress (1xx) before it included. The first byte may take as
long as httpx waits for any, since a relay may have to work before it answers. While a request is taken, and
while the rest of the answer comes, the waiting has PATIENCE seconds and one more for so many bytes. An answer
may be OVERHEAD times as long as what it holds: chunks have sizes, extensions and trailers.
"""

from __future__ import annotations

from collections.abc import Iterable
from time import monotonic
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import ssl

    import httpx

HEAD_SECONDS, HEAD_BYTES = 60.0, 256 * 1024
PATIENCE, SLOWEST_RATE = 300.0, 1024  # seconds of waiting in all, one more for so many bytes
OVERHEAD, OVERHEAD_FREE = 8, 1024 * 1024
SLICE = 64 * 1024  # bytes written between two looks at the clock


class OutOfPatience(Exception):
    """The server is too slow, or its answer never ends; the message continues a sentence about it."""


def limit(client: httpx.Client) -> None:
    """Have every connection of this client counted."""
    mounted: list[Any] = [client._transport, *client._mounts.values()]
    for transport in mounted:
        if transport is not None:  # the pool has no other way in: httpx does not hand the backend on
            transport._pool._network_backend = _Backend(transport._pool._network_backend)


def answered(response: httpx.Response) -> None:
    """The head is there: what comes now is the rest."""
    connection = response.extensions.get("network_stream")
    if isinstance(connection, _Connection):
        connection.in_head = False


def require_content(response: httpx.Response, content: int) -> None:
    """OutOfPatience for an answer that is mostly wrapping; `content`: bytes that came out of it so far."""
    connection = response.extensions.get("network_stream")
    if isinstance(connection, _Connection) and connection.received > OVERHEAD * content + OVERHEAD_FREE:
        raise OutOfPatience("wraps its answer in bytes without end")


class _Backend:
    """httpcore's network backend, whose connections count."""

    def __init__(self, inner: Any) -> None:
        self._inner = inner

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> _Connection:
        return _Connection(self._inner.connect_tcp(host, port, timeout, local_address, socket_options))

    def sleep(self, seconds: float) -> None:
        self._inner.sleep(seconds)


class _Connection:
    """httpcore's network stream. A write after a read begins another request."""

    def __init__(self, inner: Any) -> None:
        self._inner = inner
        self._begin()

    def _begin(self) -> None:
        self.in_head = True
        self.received = self._sent = 0
        self._waited = 0.0
        self._until: float | None = None  # when the head must have ended

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        began = monotonic()
        left = self._left(began)
        if left is not None:
            timeout = left if timeout is None else min(left, timeout)
        try:
            data: bytes = self._inner.read(max_bytes, timeout)
        except Exception:
            if left is not None and timeout == left and monotonic() - began >= left:
                raise self._too_slow() from None
            raise
        self._count(len(data), began)
        return data

    def _left(self, now: float) -> float | None:
        """Seconds that the server may still take; None before the first byte. OutOfPatience if none."""
        if not self.in_head:
            left = PATIENCE + self.received / SLOWEST_RATE - self._waited
        elif self._until is not None:
            left = self._until - now
        else:
            return None
        if left <= 0:
            raise self._too_slow()
        return left

    def _count(self, size: int, began: float) -> None:
        now = monotonic()
        first, self.received = self.received == 0, self.received + size
        if not self.in_head:
            self._waited += now - began
        elif first:
            self._until, self._waited = now + HEAD_SECONDS, 0.0
        elif self.received > HEAD_BYTES:
            raise OutOfPatience("sends the head of an answer that never ends")

    def _too_slow(self) -> OutOfPatience:
        return OutOfPatience(f"sends {'the head of its' if self.in_head else 'its'} answer too slowly")

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        if self.received:
            self._begin()
        for start in range(0, len(buffer), SLICE):
            part = buffer[start : start + SLICE]
            began = monotonic()
            self._inner.write(part, timeout)
            self._waited += monotonic() - began
            self._sent += len(part)
            if self._waited > PATIENCE + self._sent / SLOWEST_RATE:
                raise OutOfPatience("takes what is sent to it too slowly")

    def start_tls(
        self, ssl_context: ssl.SSLContext, server_hostname: str | None = None, timeout: float | None = None
    ) -> _Connection:
        return _Connection(self._inner.start_tls(ssl_context, server_hostname, timeout))

    def close(self) -> None:
        self._inner.close()

    def get_extra_info(self, info: str) -> Any:
        return self._inner.get_extra_info(info)
