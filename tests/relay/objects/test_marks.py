"""Marks: what was met before, and an end in the middle of the work."""

from __future__ import annotations

import asyncio
import os

from relay.objects.marks import Marks
from tests.depth import rounds


def digests(count: int) -> list[bytes]:
    return [os.urandom(32) for _ in range(count)]


def test_only_what_is_new_comes_back() -> None:
    async def work() -> None:
        marks = Marks()
        some = digests(25_000)
        assert await marks.add([*some, *some]) == some
        more = digests(10)
        assert await marks.add([some[0], *more]) == more
        assert await marks.among([some[-1], *digests(3)]) == {some[-1]}
        assert marks.count() == len(some) + len(more)
        marks.close()

    asyncio.run(work())


def test_a_collection_that_is_cancelled_closes_nothing_beneath_a_running_statement() -> None:
    async def collect(some: list[bytes]) -> None:
        marks = Marks()
        try:
            await marks.add(some)
        finally:
            marks.close()  # SQLite takes the whole process down when its thread is still at work

    async def work() -> None:
        some = digests(60_000)
        for pause in range(0, 20, rounds(4, 1)):
            task = asyncio.create_task(collect(some))
            await asyncio.sleep(0.002 * (pause + 1))
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    asyncio.run(work())
