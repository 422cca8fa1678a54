"""Archives, slices of history, pages of comparisons: made in turns, on the budget of who reads."""

from __future__ import annotations

import asyncio
import gzip
import io
import tarfile
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import replace
from pathlib import Path

import pytest

from localstore.core.errors import NotFound, RateLimited
from localstore.core.model.artifact import Artifact
from localstore.core.model.base import Page, PageQuery
from localstore.core.model.history import CompareQuery, Tree
from localstore.core.model.limits import COMPARE_FILES
from localstore.core.tree.policy import Policy
from relay.caller import View
from relay.domain.catalog import artifact
from relay.domain.history import sealed
from relay.domain.history.archive import archive
from relay.domain.history.compare import compare
from relay.domain.history.files import list_tree
from relay.domain.history.history_pack import history_pack
from relay.domain.history.proof import proof, require_named
from relay.http.buffers import Buffers, Lease
from relay.http.routing import Reply
from relay.memory import workers
from relay.memory.fair import WORK
from tests.patience import PATIENCE
from tests.relay.domain.live.live_world import World, world
from tests.relay.domain.live.test_landing import finalize, prepare
from tests.relay.domain.test_costs import flat, single
from tests.relay.memory.test_streams import unlimited

FILES = 700
Asked = Callable[[View, str], Awaitable[Reply]]


async def slice_of_history(view: View, seal_id: str) -> Reply:
    return await history_pack(view, seal_id, None, None)


async def whole_tree(view: View, seal_id: str) -> Tree:
    return await list_tree(view, seal_id, "", recursive=True)


async def directory(view: View, seal_id: str) -> Tree:
    return await list_tree(view, seal_id, "", recursive=False)


async def artifacts(view: View, seal_id: str) -> Page[Artifact]:
    return await artifact.page(view, seal_id, PageQuery())


async def named(view: View, seal_id: str) -> None:
    with pytest.raises(NotFound):
        await require_named(view, seal_id, [bytes(32)])


class Full(Buffers):
    """Memory that says when an answer waits for some of it. `room`: what answers may have."""

    room = 75_000

    def __init__(self) -> None:
        super().__init__(total=100_000, each=100_000)
        self.asked = asyncio.Event()

    async def wait(self, address: str, size: int, patience: float = PATIENCE) -> int:
        self.asked.set()
        return await super().wait(address, size, PATIENCE)


@pytest.fixture
async def w(tmp_path: Path) -> AsyncIterator[World]:
    async with world(tmp_path) as made:
        made.node.limiter.enabled = True
        made.node.limiter._clock = lambda: 0.0  # no budget comes back
        yield made


async def read(reply: Reply) -> bytes:
    assert reply.stream is not None
    return b"".join([part async for part in reply.stream])


def left(view: View) -> float:
    """The budget of who reads, in seconds of the processor."""
    budget = view.node.limiter._refill(f"texts {view.payer}", WORK).tokens
    assert isinstance(budget, float)
    return budget


async def test_an_archive_is_packed_in_the_process_beside_the_relay(w: World) -> None:
    a = await w.device()
    head = await flat(a, FILES)
    assert not w.node.workers.started
    raw = gzip.decompress(await read(await archive(a.view, head)))
    assert w.node.workers.started
    with tarfile.open(fileobj=io.BytesIO(raw)) as packed:
        assert sum(member.isfile() for member in packed) == FILES
    assert len(raw) % tarfile.RECORDSIZE == 0


@pytest.mark.parametrize("asked", [archive, slice_of_history])
async def test_it_counts_on_the_budget_of_who_reads(w: World, asked: Asked) -> None:
    a, b = await w.device(), await w.device(await w.account())
    head = await flat(a, FILES)
    before = left(a.view)
    await read(await asked(a.view, head))
    assert left(a.view) < before
    w.node.share.count_spent(a.view.payer, 10 * WORK.burst)
    with pytest.raises(RateLimited):
        await asked(a.view, head)
    assert await read(await asked(b.view, head))


@pytest.mark.parametrize("hides", [False, True])
@pytest.mark.parametrize("asked", [whole_tree, directory, artifacts, proof, named])
async def test_who_walks_a_whole_tree_does_it_on_their_budget(
    w: World, asked: Callable[[View, str], Awaitable[object]], hides: bool
) -> None:
    if not hides and asked in (directory, named):
        return  # which walk nothing then
    a = await w.device()
    head = await flat(a, FILES, "below/")
    view = replace(a.view, policy=Policy(1, {"below/file-0": "private"}) if hides else None)
    before = left(view)
    answer = await asked(view, head)
    if isinstance(answer, Reply):
        await read(answer)
    assert left(view) < before
    w.node.share.count_spent(view.payer, 10 * WORK.burst)
    if hides:
        view = replace(view, policy=Policy(2, {"below/file-0": "private"}))  # nothing of it is known yet
    with pytest.raises(RateLimited):
        await asked(view, head)


@pytest.mark.parametrize("asked", [archive, slice_of_history])
async def test_what_is_hidden_counts_as_it_is_walked_over(w: World, asked: Asked) -> None:
    a = await w.device()
    head = await flat(a, FILES, "below/")
    hidden = replace(a.view, policy=Policy(1, {"below": "private", "below/file-0": "public"}))
    before = left(hidden)
    answer = await read(await asked(hidden, head))
    assert answer
    spent = before - left(hidden)
    assert spent > FILES * sealed.WALKED


async def test_a_proof_waits_for_the_turns_of_others(w: World) -> None:
    a = await w.device()
    reply = await proof(a.view, await flat(a, FILES))
    async with asyncio.timeout(PATIENCE):
        async with w.node.streams.turn("b", unlimited()):
            reading = asyncio.create_task(read(reply))
            while a.view.payer not in w.node.streams._turns._waiting:
                await asyncio.sleep(0)
            assert not reading.done()
        assert await reading


async def test_an_archive_that_has_begun_goes_on_when_the_budget_is_used_up(w: World) -> None:
    a = await w.device()
    head = await flat(a, FILES)
    reply = await archive(a.view, head)
    assert reply.stream is not None
    parts = [await anext(reply.stream)]
    w.node.share.count_spent(a.view.payer, left(a.view))
    parts += [part async for part in reply.stream]
    assert gzip.decompress(b"".join(parts))


async def test_an_archive_that_waits_for_the_process_holds_up_no_other_answer(w: World) -> None:
    a = await w.device()
    reply = await archive(a.view, await flat(a, FILES))
    queue = w.node.workers._turns
    async with asyncio.timeout(PATIENCE), queue.turn("somebody"):
        reading = asyncio.create_task(read(reply))
        while a.view.payer not in queue._waiting:
            await asyncio.sleep(0)
        async with w.node.streams.turn("b", unlimited()):
            assert not reading.done()
    assert await reading


async def test_nobody_waits_for_a_comparison_whose_payer_waits_for_budget(
    w: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(workers, "LITTLE", 0)
    a, b = await w.device(), await w.device(await w.account())
    first = await flat(a, 3)
    made = await finalize(a, await prepare(a, first, *await single(w, 3)))
    asked = CompareQuery(base=first, head=made.items[-1].id)
    waits, goes_on = asyncio.Event(), asyncio.Event()
    comparisons, share = w.node.comparisons, w.node.share
    held: list[bool] = []

    async def afford(who: str) -> None:
        if who == a.view.payer:
            waits.set()
            await goes_on.wait()

    def owed(who: str) -> float:
        held.append(bool(comparisons._turns._locks))
        return 0.0

    monkeypatch.setattr(w.node.workers, "afford", afford)
    monkeypatch.setattr(share, "seconds_owed", owed)
    async with asyncio.timeout(PATIENCE):
        poor = asyncio.create_task(compare(a.view, asked))
        await waits.wait()
        page = await compare(b.view, asked)
        goes_on.set()
        assert await poor == page
    assert page.files
    assert not any(held), "nobody asks for budget while others wait for the comparison"


@pytest.mark.parametrize("asked", [archive, slice_of_history])
async def test_one_that_waits_for_memory_holds_up_no_other(w: World, asked: Asked) -> None:
    a, b = await w.device(), await w.device(await w.account())
    head = await flat(a, FILES)
    reply = await asked(a.view, head)
    memory = Full()
    holder, a.view.lease.buffers = Lease(memory, "holder"), memory
    holder.reserve(memory.room)
    reading = asyncio.create_task(read(reply))
    try:
        async with asyncio.timeout(PATIENCE):
            await memory.asked.wait()
            assert await read(await asked(b.view, head))
        assert not reading.done()
    finally:
        holder.release()
    assert await reading


async def test_the_walk_over_changed_directories_counts_too(w: World) -> None:
    """Two large directories are gone through for each line, however little has changed."""
    a = await w.device()
    made = await finalize(a, await prepare(a, await flat(a, 3000), *await single(w, 3)))
    before = left(a.view)
    await read(await history_pack(a.view, made.items[-1].id, 1, 0))
    one = before - left(a.view)
    await read(await history_pack(a.view, made.items[-1].id, 4, 0))
    assert before - one - left(a.view) > one


async def test_a_page_of_a_comparison_counts_again_for_each_who_reads_it(w: World) -> None:
    a, b = await w.device(), await w.device(await w.account())
    first = await flat(a, FILES)
    made = await finalize(a, await prepare(a, first, *await single(w, FILES)))
    asked = CompareQuery(base=first, head=made.items[-1].id)
    page = await compare(a.view, asked)
    assert len(page.files) == COMPARE_FILES
    for view in (a.view, b.view):
        before = left(view)
        assert await compare(view, asked) == page
        assert left(view) < before
    w.node.share.count_spent(a.view.payer, 10 * WORK.burst)
    with pytest.raises(RateLimited):
        await compare(a.view, asked)
