"""Shares the processor time for work on texts fairly between accounts.

Accounts take turns, one slice of work each. The CPU seconds of a slice count against the account's budget. An
account that has used its budget waits until the budget is refilled. All accounts that have used their own
budget share one more budget. While a slice runs, other threads can hardly run. So a long slice is followed by
a pause of the same length.
"""

from __future__ import annotations

import asyncio
import contextlib
import math
import time
from collections import OrderedDict, deque
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TypeVar

from localstore.core.errors import RateLimited
from relay.base.threads import to_end
from relay.capacity.limiter import Limiter, Rate

R = TypeVar("R")
WORK = Rate(burst=20.0, per_second=0.2)  # seconds of the processor, for each account
SHARED = Rate(burst=1.0, per_second=0.3)  # for all accounts together that have used up theirs
WAITING = 16  # jobs of one account that may wait for their turn
SLICE = 0.02  # seconds of work before others have their turn
PATIENCE = 20.0  # seconds that one job may wait for its account's budget
READERS_PATIENCE = 10.0  # seconds: a reader who owes more than this is refused
LONG = 0.05  # seconds: a slice of less needs no rest


class Turn:
    """A turn that an account holds. `release` ends it, and `take_again` waits for another one."""

    def __init__(self, turns: AccountTurns, who: str) -> None:
        self._turns, self._who, self.held = turns, who, True

    def release(self) -> None:
        self.held = False
        self._turns._next()

    async def take_again(self) -> None:
        await self._turns._take(self._who, math.inf)  # who had a turn is not refused in its middle
        self.held = True


class AccountTurns:
    """Gives accounts turns, one account at a time. Within an account, requests get turns in the order in
    which they came. `waiting`: how many requests of one account may wait."""

    def __init__(self, waiting: float = WAITING) -> None:
        self._most = waiting
        self._busy = False
        self._waiting: OrderedDict[str, deque[asyncio.Future[None]]] = OrderedDict()

    @contextlib.asynccontextmanager
    async def turn(self, who: str, *, refused: bool = True) -> AsyncIterator[Turn]:
        """A context in which it is the turn of the account `who`. Waits for this turn first. `refused`: raise
        RateLimited if too many requests of this account wait already."""
        await self._take(who, self._most if refused else math.inf)
        turn = Turn(self, who)
        try:
            yield turn
        finally:
            if turn.held:
                self._next()

    async def _take(self, who: str, most: float) -> None:
        if self._busy:
            await self._wait(who, most)
        self._busy = True

    async def _wait(self, who: str, most: float) -> None:
        if len(self._waiting.get(who, ())) >= most:
            raise RateLimited("too much at once; ask for one after the other")
        called = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(who, deque()).append(called)
        try:
            await called
        except asyncio.CancelledError:
            if called.done() and not called.cancelled():
                self._next()  # it was our turn already
            else:
                self._leave(who, called)
            raise

    def _leave(self, who: str, called: asyncio.Future[None]) -> None:
        """Take a request out of the account's queue, because it no longer waits."""
        queue = self._waiting.get(who, deque())
        with contextlib.suppress(ValueError):
            queue.remove(called)
        if not queue:
            self._waiting.pop(who, None)

    def _next(self) -> None:
        self._busy = False
        while self._waiting:
            who, queue = self._waiting.popitem(last=False)
            called = queue.popleft()
            if queue:
                self._waiting[who] = queue  # the last one now
            if not called.done():
                self._busy = True
                called.set_result(None)
                return


class Share:
    """Runs work on texts in a thread of its own. Accounts take turns, and the time of the work counts against
    their budgets."""

    def __init__(self, limiter: Limiter) -> None:
        self._limiter = limiter
        self._turns = AccountTurns()
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="texts")

    def require(self, who: str) -> None:
        """Raise RateLimited if the account `who` has no budget left."""
        wait = self._limiter.debt(_lock_name(who), WORK, 0)
        if wait > 0:
            raise RateLimited("these edits were too much work; send the next ones later", math.ceil(wait))

    def seconds_owed(self, who: str) -> float:
        """How many seconds it takes until the account has budget again. Returns 0.0 if it has some now."""
        wait = self._limiter.debt(_lock_name(who), WORK, 0)
        return wait and max(wait, self._limiter.debt("texts", SHARED, 0))

    def require_soon(self, who: str) -> float:
        """How many seconds it takes until the account has budget again. Raises RateLimited if that is longer
        than a reader may be made to wait."""
        if (wait := self.seconds_owed(who)) > READERS_PATIENCE:
            raise RateLimited("this was too much work for one reader; ask again later", math.ceil(wait))
        return wait

    def count_spent(self, who: str, seconds: float) -> float:
        """Count the CPU seconds of work that was done. Returns how many seconds to wait before more work is
        allowed."""
        wait = self._limiter.debt(_lock_name(who), WORK, seconds)
        return max(wait, self._limiter.debt("texts", SHARED, seconds)) if wait else 0.0

    async def run(self, who: str, work: Callable[[], R]) -> tuple[R, float]:
        """Run a slice of work in the account's turn. Returns (its result, seconds to wait before the next
        slice)."""
        async with self._turns.turn(who):
            running = asyncio.get_running_loop().run_in_executor(self._thread, partial(_run_timed, work))
            result, seconds = await to_end(running)  # the turn lasts as long
            if seconds > LONG:
                await asyncio.sleep(seconds)
        return result, self.count_spent(who, seconds)

    async def finish(self, who: str, work: Callable[[float], bool]) -> None:
        """Run a whole job in slices. `work`: a function that is given the seconds that a slice may take, and
        returns whether the job is complete. Raises RateLimited if the account's budget does not suffice."""
        self.require(who)
        patience = PATIENCE
        while True:
            complete, wait = await self.run(who, partial(work, SLICE))
            if complete:
                return
            patience -= wait
            if patience < 0:
                raise RateLimited("this is too much work at once; ask for less", math.ceil(wait))
            await asyncio.sleep(wait)

    def close(self) -> None:
        self._thread.shutdown()


def _lock_name(who: str) -> str:
    return f"texts {who}"


def _run_timed(work: Callable[[], R]) -> tuple[R, float]:
    began = time.thread_time()
    return work(), time.thread_time() - began
