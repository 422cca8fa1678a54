"""Memory that clients may make the relay hold: bodies still arriving, and answers still being taken.

Without it, strangers who send all but the last byte of large bodies, or never read large answers, would
decide how much memory the process has.
"""

from __future__ import annotations

import asyncio
import contextlib
from dataclasses import dataclass

from localstore.core.errors import Unavailable
from localstore.core.limits import MIB

TOTAL = 384 * MIB
FOR_AN_ADDRESS = 128 * MIB
ANSWERS = 3, 4  # this share is all that answers may hold: readers that never read leave the rest to requests
PATIENCE, BEGUN_PATIENCE = 5.0, 30.0  # seconds that an answer waits for memory; that one which has begun does


class Buffers:
    """Bytes held at this moment, in all and for each address."""

    def __init__(self, total: int = TOTAL, each: int = FOR_AN_ADDRESS) -> None:
        self._total, self.each = total, each
        self._held: dict[str, int] = {}
        self._sum = 0
        self._freed = asyncio.Event()

    def take(self, address: str, size: int) -> None:
        """Unavailable when that would be too much; what is held already stays."""
        held = self._held.get(address, 0) + size
        if held > self.each or self._sum + size > self._total:
            raise Unavailable("too many large requests at once; try again in a moment")
        self._held[address] = held
        self._sum += size

    async def wait(self, address: str, size: int, patience: float = PATIENCE) -> int:
        """Take for an answer, as soon as others have given back what it needs; of more than one address may
        have, only that. What was taken. Unavailable when it takes longer than `patience` seconds."""
        size = min(size, self.each)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(patience):
                while not self._has_room(address, size):
                    await self._freed.wait()
        if not self._has_room(address, size):
            raise Unavailable("too many large answers at once; try again in a moment")
        self.take(address, size)
        return size

    def _has_room(self, address: str, size: int) -> bool:
        share, of = ANSWERS
        return (
            self._held.get(address, 0) + size <= self.each and self._sum + size <= self._total * share // of
        )

    def give_back(self, address: str, size: int) -> None:
        self._freed.set()
        self._freed = asyncio.Event()
        self._sum -= size
        left = self._held.get(address, 0) - size
        if left > 0:
            self._held[address] = left
        else:
            self._held.pop(address, None)


@dataclass(slots=True)
class Lease:
    """What one request holds; `release` it when the answer was sent."""

    buffers: Buffers
    address: str
    size: int = 0

    def take(self, size: int) -> None:
        self.buffers.take(self.address, size)
        self.size += size

    async def wait(self, size: int, patience: float = PATIENCE) -> int:
        """As `take`, for an answer: it waits until there is room. How much was taken, for `give_back`: less
        than `size` where an address may not have so much, since an answer never waits for itself."""
        taken = await self.buffers.wait(self.address, min(size, self.buffers.each - self.size), patience)
        self.size += taken
        return taken

    def give_back(self, size: int) -> None:
        """A part of what was taken is no longer held; nothing after `release`."""
        size = min(size, self.size)
        self.buffers.give_back(self.address, size)
        self.size -= size

    def release(self) -> None:
        if self.size:
            self.buffers.give_back(self.address, self.size)
            self.size = 0
