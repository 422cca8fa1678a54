"""Limits on the time and bytes that a server can cost one connection.

A timeout for each read would not stop a server that sends a byte now and then. So each request has limits in
total. From its first byte on, the head of the answer must be complete within HEAD_SECONDS, and have at most
HEAD_BYTES bytes; this includes 1xx responses before it. `svc.http.silence` limits the wait for the first
byte.

For the request body and the rest of the answer, the waiting time is limited to WAIT_SECONDS, plus one second
for every SLOWEST_RATE bytes. With its framing (chunk sizes, extensions, trailers), an answer may be at most
OVERHEAD times as long as its content."""

from __future__ import annotations

HEAD_SECONDS, HEAD_BYTES = 60.0, 256 * 1024
WAIT_SECONDS, SLOWEST_RATE = 300.0, 1024  # total seconds of waiting; bytes that add a second
OVERHEAD, OVERHEAD_FREE = 8, 1024 * 1024


class ConnectionLimitExceeded(Exception):
    """Raised if the server is too slow, or if its answer does not end. Its message is the end of a sentence
    whose subject is the server."""


class ConnectionLimits:
    """Counts the waiting time and the bytes of one request. Raises ConnectionLimitExceeded if they exceed the
    limits. All times are seconds of a monotonic clock."""

    def __init__(self) -> None:
        self.in_head = True
        self.content = 0  # bytes of the body that were handed on
        self._received = self._sent = 0
        self._waited = 0.0
        self._until: float | None = None  # when the head must have ended

    def left(self, now: float) -> float | None:
        """Return how many seconds the next read may take. None means no limit, as before the first byte of
        the answer. Raises ConnectionLimitExceeded if no time is left."""
        if not self.in_head:
            remaining = WAIT_SECONDS + self._received / SLOWEST_RATE - self._waited
        elif self._until is not None:
            remaining = self._until - now
        else:
            return None
        if remaining <= 0:
            raise self.too_slow()
        return remaining

    def too_slow(self) -> ConnectionLimitExceeded:
        return ConnectionLimitExceeded(
            f"sends {'the head of its' if self.in_head else 'its'} answer too slowly"
        )

    def count_received(self, size: int, began: float, now: float) -> None:
        """Count `size` received bytes, for which the caller waited from `began` until `now`."""
        first, self._received = self._received == 0, self._received + size
        if not self.in_head:
            self._waited += now - began
            if self._received > OVERHEAD * self.content + OVERHEAD_FREE:
                raise ConnectionLimitExceeded("wraps its answer in bytes without end")
        elif first:
            self._until, self._waited = now + HEAD_SECONDS, 0.0
        elif self._received > HEAD_BYTES:
            raise ConnectionLimitExceeded("sends the head of an answer that never ends")

    def count_sent(self, size: int, began: float, now: float) -> None:
        """Count `size` sent bytes, for which the caller waited from `began` until `now`."""
        self._waited += now - began
        self._sent += size
        if self._waited > WAIT_SECONDS + self._sent / SLOWEST_RATE:
            raise ConnectionLimitExceeded("takes what is sent to it too slowly")


class NoLimits(ConnectionLimits):
    """Sets no limits. Used for a connection that stays open, such as a WebSocket, which detects a dead server
    by pings."""

    def left(self, now: float) -> float | None:
        return None

    def count_received(self, size: int, began: float, now: float) -> None:
        """Do nothing, because received bytes have no limit here."""

    def count_sent(self, size: int, began: float, now: float) -> None:
        """Do nothing, because sent bytes have no limit here."""
