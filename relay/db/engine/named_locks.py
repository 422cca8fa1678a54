"""Locks by name inside one process."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Iterable
from dataclasses import dataclass, field


@dataclass(slots=True)
class _Waited:
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    users: int = 0


class Names:
    """Locks by name, each held by one task at a time; unused names take no memory."""

    def __init__(self) -> None:
        self._waited: dict[str, _Waited] = {}

    @contextlib.asynccontextmanager
    async def hold(self, names: Iterable[str]) -> AsyncIterator[None]:
        """A context that holds the locks of all these names. They are always acquired in the same order, so
        that two tasks cannot deadlock."""
        async with contextlib.AsyncExitStack() as stack:
            for name in sorted(set(names)):
                await stack.enter_async_context(self._hold_one(name))
            yield

    @contextlib.asynccontextmanager
    async def _hold_one(self, name: str) -> AsyncIterator[None]:
        waited = self._waited.setdefault(name, _Waited())
        waited.users += 1
        try:
            async with waited.lock:
                yield
        finally:
            waited.users -= 1
            if not waited.users:
                del self._waited[name]
