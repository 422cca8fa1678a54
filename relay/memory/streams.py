"""Turns for answers that read many files. Each answer is made in steps, and readers take turns.

Only one step runs at a time, because the event loop finds and joins the files of a step and can do nothing
else meanwhile. The time of a step counts against the reader's budget, and the step is followed by a pause of
the same length. A reader whose budget is used up continues slowly, because an answer that has begun can no
longer be refused. A step that has to wait for memory gives its turn to another reader. Otherwise both could
wait for ever: the readers that hold the memory may need a turn to release it.
"""

from __future__ import annotations

import asyncio
import contextlib
import math
from collections.abc import AsyncIterator

from localstore.core.model.limits import MIB
from relay.http.buffers import Lease
from relay.memory.fair import AccountTurns, Share

FILE, BYTE = 30e-6, 5e-3 / MIB  # seconds of the processor that a file and its bytes take, about


class Step:
    """One step of an answer that reads many files. `seconds`: the CPU time that the step has used, estimated
    from files and bytes."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def count(self, files: int, size: int = 0) -> None:
        """Add the CPU time of visiting `files` files and reading `size` bytes, as estimated."""
        self.seconds += files * FILE + size * BYTE


class Streams:
    """Lets the answers that read many files take turns, one step each. `share`: the budgets of accounts,
    which the CPU time of the steps uses up."""

    def __init__(self, share: Share) -> None:
        self._share = share
        self._turns = AccountTurns(math.inf)  # each answer waits once, and connections are counted elsewhere

    def require(self, who: str) -> None:
        """Raise RateLimited if the account `who` has overdrawn its budget so far that no answer may begin."""
        self._share.require_soon(who)

    @contextlib.asynccontextmanager
    async def turn(self, who: str, lease: Lease, *, paid: bool = False) -> AsyncIterator[Step]:
        """A context in which the account `who` may make the next step of its answer. It waits for the
        account's turn, and the CPU time of the step counts against the account's budget. Never send to a
        client inside this context, because other accounts wait meanwhile. `lease`: the memory of the request;
        if the step has to wait for memory, another account gets the turn. `paid`: the account has already
        waited for its budget and does not wait again."""
        if not paid:
            await asyncio.sleep(self._share.seconds_owed(who))
        async with self._turns.turn(who) as turn:
            step, lease.turn, lease.walked = Step(), turn, 0.0
            try:
                yield step
            finally:
                lease.turn = None
                step.seconds += lease.walked
                self._share.count_spent(who, step.seconds)
            await asyncio.sleep(step.seconds)
