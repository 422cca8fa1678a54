"""Decides whether the server is still needed. An app that needs it holds a lease: a locked file, whose lock
the system releases when the app ends.
"""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

from localstore.models.leases import list_leases, stays

IDLE_SECONDS = 300.0  # without a lease and a request until a server ends that was started for them
LOOK_SECONDS = 2.0
STAYING_SECONDS = 30.0  # between two looks at a server that stays


class Idle:
    """Watches the leases of the server on a port. A server that was started to run without leases never
    counts as idle."""

    def __init__(self, home: Path, port: int) -> None:
        self._folder = home / str(port)
        self._open = 0
        self._since = time.monotonic()

    def set_open_requests(self, open_requests: int) -> None:
        """Record the number of open requests. Called each time that it changes."""
        self._open = open_requests
        self._since = time.monotonic()

    def over(self, now: float) -> bool:
        """Whether the server was not needed for IDLE_SECONDS. `now`: `time.monotonic()`."""
        if self._open or stays(self._folder) or list_leases(self._folder):
            self._since = now
        return now - self._since > IDLE_SECONDS

    async def wait(self) -> None:
        """Return once the server is not needed any more."""
        while not self.over(time.monotonic()):  # noqa: ASYNC110 - leases are files, which wake nobody
            await asyncio.sleep(STAYING_SECONDS if stays(self._folder) else LOOK_SECONDS)
