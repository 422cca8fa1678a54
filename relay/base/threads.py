"""Runs work on threads: `run_on_thread` waits for the end of the call even when cancelled, `run_in_pool`
leaves one core free. `to_end` waits for the end of any work, even when cancelled."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

T = TypeVar("T")


async def to_end(work: asyncio.Future[T]) -> T:
    """Wait for the end of `work`, even if this call is cancelled. Returns the result of `work`."""
    try:
        return await asyncio.shield(work)
    finally:
        await asyncio.gather(work, return_exceptions=True)


async def run_on_thread(call: Callable[..., T], *arguments: object) -> T:
    """Run `call` on a thread and wait for its end, even when cancelled. So the caller can safely close the
    objects that the call uses: SQLite crashes if a connection is closed while it runs a statement."""
    return await to_end(asyncio.create_task(asyncio.to_thread(call, *arguments)))


def _cores() -> int:
    """Cores that this process may use."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # not on every system
        return os.cpu_count() or 1


# One core is left for everything else, however much of this work there is.
_BULK = ThreadPoolExecutor(max_workers=max(1, _cores() - 1), thread_name_prefix="bulk")


async def run_in_pool(call: Callable[..., T], *arguments: object) -> T:
    """Run `call` on a thread of the pool for work that keeps a core busy: packing, unpacking, hashing. A call
    takes milliseconds at most, because other calls wait for the same pool."""
    return await asyncio.get_running_loop().run_in_executor(_BULK, call, *arguments)
