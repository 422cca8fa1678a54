"""Turns for requests that arrived before the one in front of them on their connection was answered.

A client that waits for its answers gives the others time by that. One that writes thousands of requests at
once would have all of them answered in one go, because nothing in the answer to a small request waits. All
such requests of the process take turns, at a bounded pace; hardly any client sends them.
"""

from __future__ import annotations

import asyncio

EACH = 0.002  # seconds between two, which take about 0.2 ms


class Turns:
    def __init__(self) -> None:
        self._lock = asyncio.Lock()

    async def take(self) -> None:
        """Wait for one's turn; who came first goes first."""
        async with self._lock:
            await asyncio.sleep(EACH)
