"""Work on a thread that has ended when its caller goes on."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
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
