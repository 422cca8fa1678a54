"""A limit for the whole process on the memory in which stored frames are decompressed."""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from collections.abc import AsyncIterator


class Room:
    """A limited amount of memory, `total` bytes, that requests share in the order in which they come. Memory
    is held while frames are decompressed and objects extracted, never while a client reads an answer."""

    def __init__(self, total: int) -> None:
        self._total = self._free = total
        self._waiting: deque[tuple[int, asyncio.Future[None]]] = deque()

    @contextlib.asynccontextmanager
    async def of(self, size: int) -> AsyncIterator[None]:
        """A context that holds `size` bytes of the shared memory, waiting until they are free. If `size` is
        more than there is in all, it holds everything."""
        size = min(size, self._total)
        if self._waiting or size > self._free:
            await self._turn(size)
        else:
            self._free -= size
        try:
            yield
        finally:
            self._free += size
            self._pass_on()

    async def _turn(self, size: int) -> None:
        turn = asyncio.get_running_loop().create_future()
        self._waiting.append((size, turn))
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                self._free += size  # it was granted just before the cancel
            else:
                self._waiting.remove((size, turn))
            self._pass_on()
            raise

    def _pass_on(self) -> None:
        while self._waiting and self._waiting[0][0] <= self._free:
            size, turn = self._waiting.popleft()
            if not turn.done():
                self._free -= size
                turn.set_result(None)
