"""How long, and with how much, one server may keep a connection of ours busy.

A limit on the time of a single read or write is never exceeded by a server that gives or takes a byte now and
then. So each connection counts, from the request on: the head of an answer has to be there HEAD_SECONDS after
its first byte and in HEAD_BYTES, notes of progress (1xx) before it included. The first byte may take as long
as any read may, since a relay may have to work before it answers. While a request is taken, and while the
rest of the answer comes, the waiting has PATIENCE seconds and one more for so many bytes. An answer may be
OVERHEAD times as long as what it holds: chunks have sizes, extensions and trailers.
"""

from __future__ import annotations

HEAD_SECONDS, HEAD_BYTES = 60.0, 256 * 1024
WAIT_SECONDS, SLOWEST_RATE = 300.0, 1024  # seconds of waiting in all, one more for so many bytes
OVERHEAD, OVERHEAD_FREE = 8, 1024 * 1024


class ConnectionLimitExceeded(Exception):
    """The server is too slow, or its answer never ends; the message continues a sentence about it."""


class ConnectionLimits:
    """What one request has taken so far. Moments and durations are seconds of a clock that only runs on."""

    def __init__(self) -> None:
        self.in_head = True
        self.content = 0  # bytes of the body that were handed on
        self._received = self._sent = 0
        self._waited = 0.0
        self._until: float | None = None  # when the head must have ended

    def left(self, now: float) -> float | None:
        """Seconds that the server may still take; None before the first byte. Raises
        ConnectionLimitExceeded if none are left."""
        if not self.in_head:
            left = WAIT_SECONDS + self._received / SLOWEST_RATE - self._waited
        elif self._until is not None:
            left = self._until - now
        else:
            return None
        if left <= 0:
            raise self.too_slow()
        return left

    def too_slow(self) -> ConnectionLimitExceeded:
        return ConnectionLimitExceeded(
            f"sends {'the head of its' if self.in_head else 'its'} answer too slowly"
        )

    def received(self, size: int, began: float, now: float) -> None:
        """So many bytes came, for which we waited since `began`."""
        first, self._received = self._received == 0, self._received + size
        if not self.in_head:
            self._waited += now - began
            if self._received > OVERHEAD * self.content + OVERHEAD_FREE:
                raise ConnectionLimitExceeded("wraps its answer in bytes without end")
        elif first:
            self._until, self._waited = now + HEAD_SECONDS, 0.0
        elif self._received > HEAD_BYTES:
            raise ConnectionLimitExceeded("sends the head of an answer that never ends")

    def sent(self, size: int, began: float, now: float) -> None:
        """So many bytes were taken from us, for which we waited since `began`."""
        self._waited += now - began
        self._sent += size
        if self._waited > WAIT_SECONDS + self._sent / SLOWEST_RATE:
            raise ConnectionLimitExceeded("takes what is sent to it too slowly")


class NoLimits(ConnectionLimits):
    """Those of a connection that stays open by intent. Who uses it asks for signs of life."""

    def left(self, now: float) -> float | None:
        return None

    def received(self, size: int, began: float, now: float) -> None:
        """Nothing is counted."""

    def sent(self, size: int, began: float, now: float) -> None:
        """Nothing is counted."""
