"""Answers of many files: whose turn a step is, and what it counts."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from localstore.core.errors import RateLimited
from relay.http.limiter import Limiter
from relay.memory.fair import WAITING, WORK, Share
from relay.memory.streams import FILE, Streams


@pytest.fixture
def share() -> Iterator[Share]:
    made = Share(Limiter(clock=lambda: 0.0))
    yield made
    made.close()


async def test_readers_take_turns_and_none_that_has_begun_is_refused(share: Share) -> None:
    streams, order = Streams(share), []

    async def step(who: str) -> None:
        async with streams.turn(who):
            order.append(who)

    async with streams.turn("z"):
        tasks = []
        for who in [*["a"] * (WAITING + 2), "b", "c"]:
            tasks.append(asyncio.create_task(step(who)))
            await asyncio.sleep(0)
            await asyncio.sleep(0)
    await asyncio.gather(*tasks)
    assert order[:3] == ["a", "b", "c"]
    assert len(order) == WAITING + 4


async def test_what_a_step_goes_through_counts_also_if_it_fails(share: Share) -> None:
    streams = Streams(share)
    share.spent("a", WORK.burst)
    with pytest.raises(ZeroDivisionError):
        async with streams.turn("a") as step:
            step.count(1000)
            raise ZeroDivisionError
    assert share.owed("a") >= 1000 * FILE / WORK.per_second
    assert share.owed("b") == 0


async def test_who_owes_much_begins_no_answer(share: Share) -> None:
    streams = Streams(share)
    share.spent("a", WORK.burst * 2)
    with pytest.raises(RateLimited):
        streams.require("a")
    streams.require("b")
