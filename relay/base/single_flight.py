"""Lets requests share long work, such as verifying a large file: a second request for the same work waits for
the task that already does it. The task continues when the requests that wait for it time out, so a client
that asks again later gets its result."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any

from localstore.core.errors import Unavailable

PATIENCE = 20.0  # seconds that one request waits
RETRY_AFTER = 10
OF_ONE, OF_ALL = 2, 8  # checks that run at once; they run on, and hold memory, after their clients left


Key = tuple[str, bytes]


class SingleFlight:
    """Runs at most one task for each key. The task continues when the requests that wait for it time out.
    `patience`: seconds that a request waits. `of_all`: the most tasks at a time; `of_one`: the most for keys
    with the same first member, such as one repository's id. `busy`: message for a request that waited too
    long."""

    def __init__(
        self,
        patience: float = PATIENCE,
        of_one: int = OF_ONE,
        of_all: int = OF_ALL,
        busy: str = "the server is still reading this file; ask again",
    ) -> None:
        self._patience, self._of_one, self._of_all, self._busy = patience, of_one, of_all, busy
        self._running: dict[Key, asyncio.Task[None]] = {}

    async def join(self, key: Key, work: Coroutine[Any, Any, None]) -> None:
        """Wait for the task of `key`. If none is running, a task that runs the coroutine `work` is started.
        Raises what the task raises, and Unavailable with a time to retry if the task takes too long or too
        many are running."""
        task = self._running.get(key)
        if task is None and self._is_full(key[0]):
            work.close()
            raise Unavailable("the server reads other files first; ask again", retry_after=RETRY_AFTER)
        if task is None:
            task = asyncio.create_task(work)
            self._running[key] = task
            task.add_done_callback(lambda done: self._remove_ended(key, done))
        else:
            work.close()
        done, _ = await asyncio.wait([task], timeout=self._patience)
        if not done:
            raise Unavailable(self._busy, retry_after=RETRY_AFTER)
        task.result()

    def _is_full(self, owner: str) -> bool:
        of_one = sum(key[0] == owner for key in self._running)
        return len(self._running) >= self._of_all or of_one >= self._of_one

    def _remove_ended(self, key: Key, done: asyncio.Task[None]) -> None:
        del self._running[key]
        if not done.cancelled():
            done.exception()  # whoever waited was told; nobody may have
