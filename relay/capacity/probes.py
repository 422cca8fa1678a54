"""Cached results of health checks that write something. A check never runs twice at the same time, and its
result is valid for a short time. So frequent readiness requests cost nothing."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

FRESH = 3.0  # seconds for which a good answer holds; a bad one is looked at again after RETRY
RETRY = 1.0
PATIENCE = 5.0  # seconds after which what does not answer counts as down


@dataclass(slots=True)
class _Last:
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    until: float = float("-inf")
    error: Exception | None = None


class Probes:
    """The last result of each health check, by the name of the check."""

    def __init__(self) -> None:
        self._last: dict[str, _Last] = {}

    async def look(self, name: str, check: Callable[[], Awaitable[None]]) -> None:
        """Run the health check `name`, by calling `check`, unless it ran shortly before. Raise its error if
        it failed, now or then. TimeoutError means that the check did not end."""
        last = self._last.setdefault(name, _Last())
        async with last.lock:
            if time.monotonic() >= last.until:
                last.error = await _run_check(check)
                last.until = time.monotonic() + (RETRY if last.error else FRESH)
        if last.error is not None:
            raise last.error


async def _run_check(check: Callable[[], Awaitable[None]]) -> Exception | None:
    try:
        async with asyncio.timeout(PATIENCE):
            await check()
    except Exception as error:
        return error
    return None
