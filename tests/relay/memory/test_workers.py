"""Comparisons in a process of their own: results, errors, its end, and whose budget they count on."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import AsyncIterator

import pytest

from localstore.core.errors import NotFound, RateLimited, Unavailable
from relay.capacity.limiter import Limiter
from relay.memory import texts
from relay.memory.fair import WAITING, Share
from relay.memory.texts import FileSides
from relay.memory.workers import LITTLE, TextWorker

MUCH = LITTLE + 1


@pytest.fixture
async def workers() -> AsyncIterator[TextWorker]:
    share = Share(Limiter(clock=lambda: 0.0))
    made = TextWorker(share)
    yield made
    await made.close()
    share.close()


def refuse() -> None:
    raise NotFound("what was asked for")


async def test_results_and_errors_come_back_and_little_work_stays_here(workers: TextWorker) -> None:
    sides = FileSides("a", b"one\n", "a", b"two\n", None)
    near = await workers.run("ann", LITTLE, texts.make_patches, [sides], 1000)
    assert not workers.started
    assert await workers.run("ann", MUCH, texts.make_patches, [sides], 1000) == near
    assert workers.started
    assert await workers.run("ann", MUCH, os.getpid) != os.getpid()
    with pytest.raises(NotFound, match="what was asked for"):
        await workers.run("ann", MUCH, refuse)


async def test_a_process_that_ends_is_told_and_replaced(workers: TextWorker) -> None:
    first = await workers.run("ann", MUCH, os.getpid)
    with pytest.raises(Unavailable):
        await workers.run("ann", MUCH, os.kill, first, signal.SIGKILL)
    assert await workers.run("ann", MUCH, os.getpid) != first


async def test_who_leaves_takes_nobody_elses_answer(workers: TextWorker) -> None:
    text = b"".join(b"%d\n" % at for at in range(200_000))
    left = asyncio.create_task(workers.run("ann", MUCH, texts.inherit_owners, "s", text, []))
    other = asyncio.create_task(workers.run("bob", MUCH, os.getpid))
    while not workers.started:
        await asyncio.sleep(0)
    left.cancel()
    with pytest.raises(asyncio.CancelledError):
        await left
    assert await other == await workers.run("bob", MUCH, os.getpid)


async def test_work_counts_on_the_budget_of_who_asks(workers: TextWorker) -> None:
    workers._share.count_spent("ann", 1000.0)
    with pytest.raises(RateLimited):
        await workers.run("ann", MUCH, os.getpid)
    assert await workers.run("bob", MUCH, os.getpid)


async def test_an_answer_that_is_being_sent_waits_behind_any_number_of_calls(workers: TextWorker) -> None:
    async with workers._turns.turn("bob"):
        calls = [asyncio.create_task(workers.go_on("ann", MUCH, os.getpid)) for _ in range(WAITING)]
        await asyncio.sleep(0)
        with pytest.raises(RateLimited):
            await workers.go_on("ann", MUCH, os.getpid)
        sending = asyncio.create_task(workers.go_on_waiting("ann", MUCH, os.getpid))
        await asyncio.sleep(0)
        assert not sending.done()
    assert {await sending} == set(await asyncio.gather(*calls))
