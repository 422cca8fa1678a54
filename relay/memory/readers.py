"""Limits the number of readers at a time, in total and for each address. Waiting readers are admitted in the
order of their requests.
"""

from __future__ import annotations

import asyncio
from collections import Counter, deque

from localstore.core.errors import Unavailable

RETRY_AFTER = 10


class Readers:
    """Admits at most `most` readers at a time, and at most `each` of one address. `waiting`: how many may
    wait. `patience`: how many seconds each may wait."""

    def __init__(self, most: int, each: int, waiting: int, patience: float) -> None:
        self._most, self._each, self._waiting, self._patience = most, each, waiting, patience
        self._open: Counter[str] = Counter()
        self._queue: deque[tuple[str, asyncio.Future[None]]] = deque()

    @property
    def count(self) -> int:
        """The number of readers that are admitted now."""
        return self._open.total()

    async def enter(self, address: str) -> None:
        """Admit a reader of this address, until `leave` is called. Raises Unavailable if too many wait, or if
        the reader is not admitted in time."""
        if not self._queue and self._has_room(address):
            self._open[address] += 1
            return
        if len(self._queue) >= self._waiting:
            raise _busy_error()
        mine = (address, asyncio.get_running_loop().create_future())
        self._queue.append(mine)
        try:
            async with asyncio.timeout(self._patience):
                await mine[1]
        except BaseException as error:
            if mine in self._queue:
                self._queue.remove(mine)
            elif not mine[1].cancelled():
                self.leave(address)  # the place was ours already
            if isinstance(error, TimeoutError):
                raise _busy_error() from None
            raise

    def leave(self, address: str) -> None:
        self._open[address] -= 1
        if not self._open[address]:
            del self._open[address]
        self._admit()

    def _admit(self) -> None:
        """Admit waiting readers while there is room, in order. Addresses that have enough readers are
        skipped."""
        for mine in list(self._queue):
            if self.count >= self._most:
                return
            address, place = mine
            if self._has_room(address):
                self._queue.remove(mine)
                if not place.done():
                    self._open[address] += 1
                    place.set_result(None)

    def _has_room(self, address: str) -> bool:
        return self.count < self._most and self._open[address] < self._each


def _busy_error() -> Unavailable:
    return Unavailable("too many readers of git at once; try again in a moment", retry_after=RETRY_AFTER)
