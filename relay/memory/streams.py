"""Turns for answers that go through many files: each is made in steps, and those who read take turns.

One step is made at a time in all, however many read: the event loop finds the files of a step and brings them
together, which nobody else can do meanwhile. What that takes counts against the budget of who reads, and as
long as it took there is a rest. Who has no budget left reads on slowly; the answer has begun, so that it is
not refused any more.
"""

from __future__ import annotations

import asyncio
import contextlib
import math
from collections.abc import AsyncIterator

from localstore.core.errors import RateLimited
from localstore.core.limits import MIB
from relay.memory.fair import Share, Turns

PATIENCE = 10.0  # seconds: who owes more than this begins no new answer
FILE, BYTE = 30e-6, 5e-3 / MIB  # seconds of the processor that a file and its bytes take, about


class Step:
    """The work of one turn."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def count(self, files: int, size: int = 0) -> None:
        """Count files that were walked through and bytes that were read."""
        self.seconds += files * FILE + size * BYTE


class Streams:
    """`share`: where the steps are counted."""

    def __init__(self, share: Share) -> None:
        self._share = share
        self._turns = Turns(math.inf)  # each answer waits once, and connections are counted elsewhere

    def require(self, who: str) -> None:
        """Raise RateLimited if `who` owes too much to begin an answer."""
        if (wait := self._share.owed(who)) > PATIENCE:
            raise RateLimited("this was too much work for one reader; ask again later", math.ceil(wait))

    @contextlib.asynccontextmanager
    async def turn(self, who: str) -> AsyncIterator[Step]:
        """Hold the turn for one step and count its work. Never send to a client within it: others would wait
        for that client."""
        await asyncio.sleep(self._share.owed(who))
        async with self._turns.turn(who):
            step = Step()
            try:
                yield step
            finally:
                self._share.spent(who, step.seconds)
            await asyncio.sleep(step.seconds)
