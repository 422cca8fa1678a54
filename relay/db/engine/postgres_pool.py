"""A small pool of connections, which are opened on demand and then reused.

asyncpg's own pool costs one more task and round trip for each use.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any


class Pool:
    """A pool of at most `size` connections. `connect` opens a connection."""

    def __init__(self, connect: Callable[[], Awaitable[Any]], size: int) -> None:
        self._connect = connect
        self._free = asyncio.Semaphore(size)
        self._idle: list[Any] = []

    async def acquire(self) -> Any:
        """An open connection outside of any transaction. Give it back with `release`."""
        await self._free.acquire()
        while self._idle:
            connection = self._idle.pop()
            if not connection.is_closed():
                return connection
        try:
            return await self._connect()
        except BaseException:
            self._free.release()
            raise

    def release(self, connection: Any) -> None:
        """Return a connection to the pool. A connection that is still in a transaction is closed."""
        if connection.is_in_transaction():
            connection.terminate()
        if not connection.is_closed():
            self._idle.append(connection)
        self._free.release()

    async def close(self) -> None:
        """Close idle connections. A connection in use is closed when it is released or when the process
        ends."""
        while self._idle:
            await self._idle.pop().close(timeout=5)
