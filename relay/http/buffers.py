"""Limits the memory that the relay uses for request bodies and answers while they are on their way. Otherwise
clients could use up the memory: by sending large bodies without the last byte, or by never reading large
answers."""

from __future__ import annotations

import asyncio
import contextlib
from dataclasses import dataclass
from typing import Protocol

from localstore.core.errors import Unavailable
from localstore.core.model.limits import MIB

TOTAL = 384 * MIB
FOR_AN_ADDRESS = 128 * MIB
ANSWERS = 3, 4  # the share that answers may hold; the rest stays free for requests
PATIENCE, BEGUN_PATIENCE = 5.0, 30.0  # seconds that an answer waits for memory; once it has begun


class Buffers:
    """The memory in use for bodies and answers, in bytes, in total and for each address."""

    def __init__(self, total: int = TOTAL, each: int = FOR_AN_ADDRESS) -> None:
        self._total, self.each = total, each
        self._held: dict[str, int] = {}
        self._sum = 0
        self._freed = asyncio.Event()

    def reserve(self, address: str, size: int) -> None:
        """Reserve `size` bytes for the address. Raises Unavailable if this would exceed a limit; then nothing
        more is reserved."""
        held = self._held.get(address, 0) + size
        if held > self.each or self._sum + size > self._total:
            raise Unavailable("too many large requests at once; try again in a moment")
        self._held[address] = held
        self._sum += size

    async def wait(self, address: str, size: int, patience: float = PATIENCE) -> int:
        """Reserve bytes for an answer, waiting until enough are released. Returns the number of reserved
        bytes, at most the limit of one address. Raises Unavailable after `patience` seconds."""
        size = min(size, self.each)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(patience):
                while not self.has_room(address, size):
                    await self._freed.wait()
        if not self.has_room(address, size):
            raise Unavailable("too many large answers at once; try again in a moment")
        self.reserve(address, size)
        return size

    def has_room(self, address: str, size: int) -> bool:
        """Whether an answer of this number of bytes fits into the limits now."""
        share, of = ANSWERS
        return (
            self._held.get(address, 0) + size <= self.each and self._sum + size <= self._total * share // of
        )

    def give_back(self, address: str, size: int) -> None:
        self._freed.set()
        self._freed = asyncio.Event()
        self._sum -= size
        rest = self._held.get(address, 0) - size
        if rest > 0:
            self._held[address] = rest
        else:
            self._held.pop(address, None)


class Passing(Protocol):
    """The turn of a request, in which it may use the CPU. The request can pass the turn on to others and take
    another one later."""

    def release(self) -> None: ...
    async def take_again(self) -> None: ...


@dataclass(slots=True)
class Lease:
    """The memory reserved for one request; call `release` when the answer is sent. `turn`: the request's turn
    to use the CPU, or None. While the request waits for memory, others get this turn. `walked`: how many CPU
    seconds of the turn were used to walk through a tree."""

    buffers: Buffers
    address: str
    size: int = 0
    turn: Passing | None = None
    walked: float = 0.0

    def reserve(self, size: int) -> None:
        self.buffers.reserve(self.address, size)
        self.size += size

    async def wait(self, size: int, patience: float = PATIENCE) -> int:
        """Reserve memory for an answer, waiting until enough is free. Returns how many bytes were reserved:
        `size`, but at most what this request may still reserve within the limit of its address. Pass this
        number to `give_back`. Raises Unavailable after `patience` seconds."""
        size = min(size, self.buffers.each - self.size)
        turn = None if self.buffers.has_room(self.address, size) else self.turn
        if turn is not None:
            turn.release()
        taken = await self.buffers.wait(self.address, size, patience)
        self.size += taken
        if turn is not None:
            await turn.take_again()
        return taken

    def give_back(self, size: int) -> None:
        """Release part of the reservation; does nothing after `release`."""
        size = min(size, self.size)
        self.buffers.give_back(self.address, size)
        self.size -= size

    def release(self) -> None:
        if self.size:
            self.buffers.give_back(self.address, self.size)
            self.size = 0
