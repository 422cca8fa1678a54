"""Long checks: joined, bounded in number, and finished without who asked."""

from __future__ import annotations

import asyncio

import pytest

from localstore.core.errors import Unavailable
from relay.base import single_flight
from relay.base.single_flight import Checks


async def test_checks_that_were_left_behind_are_counted() -> None:
    running, end = Checks(), asyncio.Event()

    async def check() -> None:
        await end.wait()

    async def ask(owner: str, name: bytes) -> None:
        await running.join((owner, name), check())

    async def leave(owner: str, name: bytes) -> None:
        task = asyncio.create_task(ask(owner, name))
        await asyncio.sleep(0)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    for n in range(single_flight.OF_ONE):
        await leave("mine", bytes([n]))
    with pytest.raises(Unavailable, match="other files first"):
        await ask("mine", b"one more")
    for n in range(single_flight.OF_ALL - single_flight.OF_ONE):
        await leave(f"other {n}", b"")
    with pytest.raises(Unavailable, match="other files first"):
        await ask("new", b"")
    joined = asyncio.create_task(ask("mine", bytes([0])))
    await asyncio.sleep(0)
    end.set()
    await joined
    await ask("mine", b"one more")
