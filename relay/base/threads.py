"""Work on a thread: that has ended when its caller goes on, or that leaves a core to others."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

T = TypeVar("T")


async def apart(call: Callable[..., T], *arguments: object) -> T:
    """Call it on a thread. It has ended when this returns, also by being cancelled, so that the caller may
    close what it works on: SQLite crashes when its connection is closed beneath a running statement."""
    work = asyncio.create_task(asyncio.to_thread(call, *arguments))
    try:
        return await asyncio.shield(work)
    finally:
        await asyncio.gather(work, return_exceptions=True)


def _cores() -> int:
    """Cores that this process may use."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # not on every system
        return os.cpu_count() or 1


# One core is left for everything else, however much of this work there is.
_BULK = ThreadPoolExecutor(max_workers=max(1, _cores() - 1), thread_name_prefix="bulk")


async def bulk(call: Callable[..., T], *arguments: object) -> T:
    """Call it on one of the threads for work that many may ask for at once and that keeps a core busy:
    packing, unpacking, hashing. What one call does takes milliseconds, since others wait behind it."""
    return await asyncio.get_running_loop().run_in_executor(_BULK, call, *arguments)
