"""Answers of many files: whose turn a step is, and what it counts."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from localstore.core.errors import RateLimited
from relay.capacity.limiter import Limiter
from relay.http.buffers import Buffers, Lease
from relay.memory.fair import WAITING, WORK, Share
from relay.memory.streams import FILE, Streams
from tests.patience import PATIENCE


@pytest.fixture
def share() -> Iterator[Share]:
    made = Share(Limiter(clock=lambda: 0.0))
    yield made
    made.close()


def unlimited() -> Lease:
    return Lease(Buffers(), "")


async def test_readers_take_turns_and_none_that_has_begun_is_refused(share: Share) -> None:
    streams, order = Streams(share), []

    async def step(who: str) -> None:
        async with streams.turn(who, unlimited()):
            order.append(who)

    async with streams.turn("z", unlimited()):
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
    share.count_spent("a", WORK.burst)
    with pytest.raises(ZeroDivisionError):
        async with streams.turn("a", unlimited()) as step:
            step.count(1000)
            raise ZeroDivisionError
    assert share.seconds_owed("a") >= 1000 * FILE / WORK.per_second
    assert share.seconds_owed("b") == 0


async def test_who_owes_much_begins_no_answer(share: Share) -> None:
    streams = Streams(share)
    share.count_spent("a", WORK.burst * 2)
    with pytest.raises(RateLimited):
        streams.require("a")
    streams.require("b")


class Crowd:
    """Readers whose steps wait for memory that somebody else has, and what they did in order."""

    def __init__(self, share: Share) -> None:
        self.streams, self.order = Streams(share), list[str]()
        self.buffers = Buffers(total=40, each=20)
        self.holder = Lease(self.buffers, "holder")

    async def step(self, who: str, size: int) -> None:
        lease = Lease(self.buffers, who)
        async with self.streams.turn(who, lease):
            self.order.append(f"{who} begins")
            await lease.wait(size, PATIENCE)
            self.order.append(f"{who} ends")
        lease.release()

    async def begin(self, who: str, size: int) -> asyncio.Task[None]:
        """A reader who has begun a step."""
        task = asyncio.create_task(self.step(who, size))
        while f"{who} begins" not in self.order:
            await asyncio.sleep(0)
        return task


async def test_who_waits_for_memory_in_a_step_gives_the_turn_away(share: Share) -> None:
    crowd = Crowd(share)
    crowd.holder.reserve(20)
    waiting = await crowd.begin("a", 15)
    async with asyncio.timeout(PATIENCE):
        await crowd.step("b", 1)
        crowd.holder.release()
        await waiting
    assert crowd.order == ["a begins", "b begins", "b ends", "a ends"]


async def test_the_turn_is_taken_again_before_the_step_goes_on(share: Share) -> None:
    crowd = Crowd(share)
    crowd.holder.reserve(20)
    waiting = await crowd.begin("a", 15)
    async with asyncio.timeout(PATIENCE):
        async with crowd.streams.turn("b", unlimited()):
            crowd.holder.release()
            for _ in range(10):
                await asyncio.sleep(0)
            assert crowd.order == ["a begins"]
        await waiting


async def test_who_leaves_while_waiting_for_memory_takes_nobody_elses_turn(share: Share) -> None:
    crowd = Crowd(share)
    crowd.holder.reserve(20)
    waiting = await crowd.begin("a", 15)
    async with asyncio.timeout(PATIENCE):
        async with crowd.streams.turn("b", unlimited()):
            waiting.cancel()
            await asyncio.gather(waiting, return_exceptions=True)
            later = asyncio.create_task(crowd.step("c", 1))
            for _ in range(10):
                await asyncio.sleep(0)
            assert crowd.order == ["a begins"]
        await later


async def test_memory_that_is_there_costs_no_turn(share: Share) -> None:
    crowd = Crowd(share)
    async with asyncio.timeout(PATIENCE):
        await asyncio.gather(crowd.step("a", 5), crowd.step("b", 5))
    assert crowd.order == ["a begins", "a ends", "b begins", "b ends"]
