"""Compares texts and makes archives in a separate process. Accounts take turns.

A thread is not enough, because while it compares texts, the interpreter has less time to serve requests.
Small work stays on a thread, because sending it to the process would cost more.
"""

from __future__ import annotations

import asyncio
import contextlib
import pickle
import sys
import time
from asyncio.subprocess import PIPE, Process
from collections.abc import Callable
from typing import TypeVar

from localstore.core.errors import TooLarge, Unavailable
from relay.base.threads import to_end
from relay.memory.fair import AccountTurns, Share
from relay.memory.worker import LENGTH, frame

R = TypeVar("R")
CallOutcome = tuple[R, Exception | None, float]  # result or error, and CPU seconds
LITTLE = 64 * 1024  # bytes of texts that a thread compares within milliseconds
LONGEST = 60.0  # seconds that one call may take, also on a machine that is busy


class TextWorker:
    """The process that compares texts. The first call that needs it starts it."""

    def __init__(self, share: Share) -> None:
        self._share = share
        self._turns = AccountTurns()
        self._process: Process | None = None

    @property
    def started(self) -> bool:
        return self._process is not None

    async def run(self, who: str, size: int, call: Callable[..., R], *arguments: object) -> R:
        """Call a function in the process that compares texts, and return its result. Its module may import
        only `localstore.core`. `size`: bytes of the texts that it reads. The CPU seconds count against the
        budget of the account `who`. Raises RateLimited if the budget is used up or too many calls wait, and
        TooLarge if the call does not end in time."""
        if size > LITTLE:
            await self.afford(who)
        return await self.go_on(who, size, call, *arguments)

    async def go_on(self, who: str, size: int, call: Callable[..., R], *arguments: object) -> R:
        """Call a function as `run` does, but do not wait until the account `who` has budget: the caller has
        already waited."""
        return await self._call(who, size, True, call, arguments)

    async def go_on_waiting(self, who: str, size: int, call: Callable[..., R], *arguments: object) -> R:
        """Call a function as `run` does, but never refuse it, neither for a used-up budget nor because too
        many calls wait. For jobs, and for answers that are already being sent."""
        return await self._call(who, size, False, call, arguments)

    def owes(self, who: str, size: int) -> bool:
        """Whether a call that reads `size` bytes has to wait until the account `who` has budget again."""
        return size > LITTLE and self._share.seconds_owed(who) > 0

    async def afford(self, who: str) -> None:
        """Wait until the account `who` has budget again. Raises RateLimited if that takes too long."""
        await asyncio.sleep(self._share.require_soon(who))

    async def _call(
        self, who: str, size: int, refused: bool, call: Callable[..., R], arguments: tuple[object, ...]
    ) -> R:
        if size <= LITTLE:
            began = time.thread_time()
            result = await asyncio.to_thread(call, *arguments)
            self._share.count_spent(who, time.thread_time() - began)
            return result
        async with self._turns.turn(who, refused=refused):
            asking = asyncio.create_task(self._ask(call, arguments))
            result, error, seconds = await to_end(asking)  # the turn lasts as long
        self._share.count_spent(who, seconds)
        if error is not None:
            raise error
        return result

    async def _ask(self, call: Callable[..., R], arguments: tuple[object, ...]) -> CallOutcome[R]:
        sent = await asyncio.to_thread(frame, (call, arguments))
        process = await self._running_process()
        assert process.stdin is not None  # noqa: S101  # it was started with both
        assert process.stdout is not None  # noqa: S101
        try:
            async with asyncio.timeout(LONGEST):
                process.stdin.write(sent)
                await process.stdin.drain()
                (length,) = LENGTH.unpack(await process.stdout.readexactly(LENGTH.size))
                raw = await process.stdout.readexactly(length)
        except TimeoutError:
            await self._end()
            raise TooLarge("these texts are too much work to compare; ask for less") from None
        except (OSError, asyncio.IncompleteReadError):
            await self._end()
            raise Unavailable("the process that compares texts ended; try again") from None
        except asyncio.CancelledError:
            await self._end()  # its answer would be taken for the next one's
            raise
        answer: CallOutcome[R] = await asyncio.to_thread(pickle.loads, raw)
        return answer

    async def _running_process(self) -> Process:
        if self._process is None or self._process.returncode is not None:
            self._process = await asyncio.create_subprocess_exec(
                sys.executable, "-P", "-m", "relay.memory.worker", stdin=PIPE, stdout=PIPE
            )
        return self._process

    async def _end(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            await process.wait()

    async def close(self) -> None:
        await self._end()
