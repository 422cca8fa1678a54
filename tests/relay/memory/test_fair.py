"""Who has a turn, who waits, and who has used up the budget."""

from __future__ import annotations

import asyncio
import contextlib
import time

import pytest

from localstore.core.errors import RateLimited
from relay.capacity.limiter import Limiter
from relay.memory.fair import PATIENCE, WAITING, WORK, AccountTurns, Share


async def queued(turns, order, names):
    """Tasks that wait for their turn in this order."""

    async def one(name):
        async with turns.turn(name[0]):
            order.append(name)

    tasks = []
    for name in names:
        tasks.append(asyncio.create_task(one(name)))
        await asyncio.sleep(0)
    return tasks


async def test_accounts_take_turns_whoever_sends_more():
    turns, order = AccountTurns(), []
    async with turns.turn("z"):
        tasks = await queued(turns, order, ["a1", "a2", "a3", "b1", "c1", "a4", "c2"])
    await asyncio.gather(*tasks)
    assert order == ["a1", "b1", "c1", "a2", "c2", "a3", "a4"]


async def test_who_leaves_the_queue_holds_up_nobody():
    turns, order = AccountTurns(), []
    async with turns.turn("z"):
        tasks = await queued(turns, order, ["a1", "b1", "b2", "c1"])
        tasks[0].cancel()
        tasks[2].cancel()
        await asyncio.sleep(0)
    await asyncio.gather(*tasks, return_exceptions=True)
    assert order == ["b1", "c1"]
    async with turns.turn("d"):
        pass


async def test_who_leaves_just_when_it_is_his_turn_passes_it_on():
    turns, order = AccountTurns(), []
    async with contextlib.AsyncExitStack() as stack:
        await stack.enter_async_context(turns.turn("z"))
        tasks = await queued(turns, order, ["a1", "b1"])
    tasks[0].cancel()  # it was called, and has not run yet
    await asyncio.gather(*tasks, return_exceptions=True)
    assert order == ["b1"]


async def test_one_account_may_wait_only_so_often():
    turns, order = AccountTurns(), []
    async with turns.turn("z"):
        tasks = await queued(turns, order, [f"a{n}" for n in range(WAITING)])
        with pytest.raises(RateLimited):
            async with turns.turn("a"):
                pass
        tasks += await queued(turns, order, ["b1"])
    await asyncio.gather(*tasks)
    assert len(order) == WAITING + 1


async def test_who_has_left_the_queue_does_not_count_as_waiting():
    turns, order = AccountTurns(), []
    async with turns.turn("z"):
        left = await queued(turns, order, [f"a{n}" for n in range(WAITING)])
        for task in left:
            task.cancel()
        await asyncio.gather(*left, return_exceptions=True)
        assert not turns._waiting
        tasks = await queued(turns, order, [f"a{n}" for n in range(WAITING)])
    await asyncio.gather(*tasks)
    assert len(order) == WAITING


@pytest.fixture
def clock():
    return [0.0]


@pytest.fixture
def share(clock):
    made = Share(Limiter(clock=lambda: clock[0]))
    yield made
    made.close()


def test_what_was_spent_comes_back(share, clock):
    share.require("a")
    share.count_spent("a", WORK.burst + 1)
    with pytest.raises(RateLimited) as refused:
        share.require("a")
    share.require("b")
    assert refused.value.extra["retry_after"] == round(1 / WORK.per_second)
    clock[0] += 1 / WORK.per_second
    share.require("a")


async def test_a_job_is_done_slice_by_slice_and_counted(share):
    slices = []

    def work(seconds):
        slices.append(seconds)
        until = time.thread_time() + 0.01
        while time.thread_time() < until:
            pass
        return len(slices) == 3

    await share.finish("a", work)
    assert len(slices) == 3
    assert share.count_spent("a", WORK.burst - 0.029) > 0


async def test_a_job_that_its_budget_does_not_allow_is_refused(share):
    def work(_):
        share.count_spent("a", PATIENCE * WORK.per_second / 2)
        return False

    share.count_spent("a", WORK.burst)
    with pytest.raises(RateLimited):
        await asyncio.wait_for(share.finish("a", work), 60)


async def test_the_turn_lasts_until_the_work_has_ended(share):
    """Whoever hangs up leaves its work running; nobody else's begins beside it."""
    running = []

    def long():
        running.append("first begins")
        time.sleep(0.2)
        running.append("first ends")

    task = asyncio.create_task(share.run("a", long))
    while not running:
        await asyncio.sleep(0.005)
    task.cancel()
    await share.run("b", lambda: running.append("second"))
    assert running == ["first begins", "first ends", "second"]
    with pytest.raises(asyncio.CancelledError):
        await task
