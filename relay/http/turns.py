"""Lets pipelined requests take turns. A pipelined request arrives before the previous request on its
connection was answered.

A client that waits for its answers leaves time for others. A client that writes thousands of requests at once
would have all of them answered without a pause, because small answers never wait. So all pipelined requests
of the process take turns at a bounded pace. Hardly any honest client sends pipelined requests.
"""

from __future__ import annotations

import asyncio

EACH = 0.002  # seconds between two, which take about 0.2 ms


class PipelineTurns:
    def __init__(self) -> None:
        self._lock = asyncio.Lock()

    async def wait(self) -> None:
        """Wait until the caller's pipelined request may be answered. Requests are let through in the order of
        the calls."""
        async with self._lock:
            await asyncio.sleep(EACH)
