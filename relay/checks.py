"""Long checks that several requests wait for together: a second asker joins, and one who gave up finds the
result when it asks again."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Hashable
from typing import Any

from localstore.core.errors import Unavailable

PATIENCE = 20.0  # seconds that one request waits
RETRY_AFTER = 10


class Checks:
    """One task for each key while it runs."""

    def __init__(self) -> None:
        self._running: dict[Hashable, asyncio.Task[None]] = {}

    async def join(self, key: Hashable, work: Coroutine[Any, Any, None]) -> None:
        """Wait for the check of `key`, started with `work` unless it runs already; what it raises, this
        raises. Unavailable, with the time to ask again, when it takes longer than one request may."""
        task = self._running.get(key)
        if task is None:
            task = asyncio.create_task(work)
            self._running[key] = task
            task.add_done_callback(lambda done: self._finished(key, done))
        else:
            work.close()
        done, _ = await asyncio.wait([task], timeout=PATIENCE)
        if not done:
            raise Unavailable("the server is still reading this file; ask again", retry_after=RETRY_AFTER)
        task.result()

    def _finished(self, key: Hashable, done: asyncio.Task[None]) -> None:
        del self._running[key]
        if not done.cancelled():
            done.exception()  # whoever waited was told; nobody may have
