"""Edits that are worked out outside of the transaction: what happens meanwhile, and what is landed."""

from __future__ import annotations

import asyncio
import contextlib
import random
import threading
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import bindparam, delete

from localstore.core.encoding import b64u
from localstore.core.errors import NotFound, RateLimited, Unavailable
from localstore.core.lane.lane import Lane
from relay.capacity.limiter import Limiter
from relay.db.schema import tables
from relay.domain.live import lane_work, live
from relay.domain.live.lane_work import Bench
from relay.memory.fair import WORK, Share
from scripts.attack.attackers import across
from tests.patience import PATIENCE
from tests.relay.domain.live.live_world import Device, World, opened, world


@pytest.fixture
async def w(tmp_path: Path) -> AsyncIterator[World]:
    async with world(tmp_path) as made:
        yield made


class Held:
    """Work on the lane that is held up until it is let go. `count`: edits that were worked out."""

    def __init__(self) -> None:
        self.begun, self.go, self.count = threading.Event(), threading.Event(), 0

    async def until_begun(self) -> None:
        await asyncio.to_thread(self.begun.wait, 20)
        assert self.begun.is_set()


@pytest.fixture
def held(monkeypatch: pytest.MonkeyPatch) -> Iterator[Held]:
    """Edits outside of the event loop's thread wait for `go`."""
    made, honest = Held(), Bench.edit

    def edit(self: Bench, *named: Any) -> Any:
        if threading.current_thread() is not threading.main_thread():
            made.count += 1
            made.begun.set()
            assert made.go.wait(PATIENCE)
        return honest(self, *named)

    monkeypatch.setattr(Bench, "edit", edit)
    yield made
    made.go.set()


def costly(device: Device, path: str, gen: int, count: int = 300) -> Any:
    """A legal edit, typed, that is not a small one."""
    ops = [b64u(across(device.replica, count))]
    return device.make("edit_text", path, gen, epoch=0, ops=ops, typed=True)


async def text_of(device: Device, path: str, gen: int) -> str:
    _, lane = await device.fetch(path, gen)
    return lane.text().decode()


async def test_others_write_while_an_edit_is_worked_out(w: World, held: Held) -> None:
    a, b = await w.device(), await w.device(await w.account())
    gen, _ = await a.text("x", b"text\n")
    other, lane = await b.text("y", b"")
    edit = costly(a, "x", gen)
    task = asyncio.create_task(a.one(edit))
    await held.until_begun()
    async with w.node.db.write("account of somebody else") as tx:
        await tx.run(delete(tables["nonce"]).where(tables["nonce"].c.key_id == bindparam("key")), key="none")
    assert not task.done()
    held.go.set()
    answer = await task
    assert answer.result == "ok" and held.count == 1
    assert (await a.one(edit)) == answer, "a repeat has the same answer"
    assert len(await text_of(a, "x", gen)) == 5 + 600
    assert (await b.one(b.edit("y", lane, other, b"1"))).result == "ok"


async def test_small_edits_are_worked_out_at_once(w: World, held: Held) -> None:
    a = await w.device()
    gen, lane = await a.text("x", b"text\n")
    for text in (b"text\nmore\n", b"more\n", b"more and more\n"):
        assert (await a.one(a.edit("x", lane, gen, text))).result == "ok"
    assert held.count == 0
    assert (await text_of(a, "x", gen)) == "more and more\n"


@pytest.fixture
def no_turns(monkeypatch: pytest.MonkeyPatch, w: World) -> None:
    """As in two processes: writers of a branch do not wait for each other."""
    monkeypatch.setattr(w.node.lanes, "turn", lambda branch_id: contextlib.nullcontext())


@pytest.mark.usefixtures("no_turns")
async def test_a_lane_that_moved_meanwhile_is_worked_on_again(w: World, held: Held) -> None:
    a, b = await w.device(), await w.device(await w.account())
    gen, lane = await a.text("x", b"text\n")
    task = asyncio.create_task(a.one(costly(a, "x", gen)))
    await held.until_begun()
    assert (await b.one(b.edit("x", lane, gen, b"text\nof b\n"))).result == "ok"
    held.go.set()
    answer = await task
    assert answer.result == "ok" and held.count == 2
    found = await text_of(a, "x", gen)
    assert found.endswith("text\nof b\n") and len(found) == 10 + 600
    state, fetched = await b.fetch("x", gen)
    assert state.ver == answer.seq and fetched.digest().hex() == answer.digest


@pytest.mark.usefixtures("no_turns")
async def test_a_captured_edit_of_a_lane_that_moved_meanwhile_is_refused(w: World, held: Held) -> None:
    """Its device merges the texts; what was worked out on the lane of before does not land."""
    a, b = await w.device(), await w.device(await w.account())
    gen, lane = await a.text("x", b"text\n")
    seen = (await a.bootstrap()).seq
    ops = [b64u(across(a.replica, 300))]
    captured = a.make("edit_text", "x", gen, base=seen, epoch=0, ops=ops)
    task = asyncio.create_task(a.one(captured))
    await held.until_begun()
    assert (await b.one(b.edit("x", lane, gen, b"text\nof b\n"))).result == "ok"
    held.go.set()
    answer = await task
    assert answer.result == "refused" and answer.code == "lane_moved"
    assert (await text_of(b, "x", gen)) == "text\nof b\n"
    assert (await a.one(captured)) == answer, "a repeat has the same answer"


@pytest.mark.usefixtures("no_turns")
async def test_another_file_that_moved_meanwhile_is_no_reason_to_begin_again(w: World, held: Held) -> None:
    a, b = await w.device(), await w.device(await w.account())
    gen, _ = await a.text("x", b"text\n")
    task = asyncio.create_task(a.one(costly(a, "x", gen)))
    await held.until_begun()
    await b.text("y", b"new\n")
    held.go.set()
    answer = await task
    assert answer.result == "ok" and held.count == 1 and answer.seq == 3
    assert len(await text_of(a, "x", gen)) == 5 + 600
    lane = (await a.fetch("x", gen))[1]
    assert (await a.one(a.edit("x", lane, gen, b"short\n"))).result == "ok"
    assert (await text_of(b, "x", gen)) == "short\n"


@pytest.mark.usefixtures("no_turns")
async def test_a_lane_that_never_rests_is_given_up_and_nothing_is_changed(
    w: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    a, b = await w.device(), await w.device(await w.account())
    gen, lane = await a.text("x", b"")
    honest = live._compute

    async def moved(*named: Any) -> Any:
        found = await honest(*named)
        if named[0] is a.view:
            monkeypatch.setattr(live, "_compute", honest)
            assert (await b.one(b.edit("x", lane, gen, lane.text() + b"b"))).result == "ok"
            monkeypatch.setattr(live, "_compute", moved)
        return found

    monkeypatch.setattr(live, "_compute", moved)
    edit = costly(a, "x", gen)
    with pytest.raises(Unavailable):
        await a.one(edit)
    assert (await text_of(b, "x", gen)) == "b" * live.ATTEMPTS
    monkeypatch.setattr(live, "_compute", honest)
    assert (await a.one(edit)).result == "ok"


@pytest.mark.usefixtures("no_turns")
async def test_a_file_that_went_meanwhile_is_refused(w: World, held: Held) -> None:
    a, b = await w.device(), await w.device(await w.account())
    gen, _ = await a.text("x", b"text\n")
    task = asyncio.create_task(a.one(costly(a, "x", gen)))
    await held.until_begun()
    assert (await b.one(b.delete("x", gen, 1))).result == "ok"
    held.go.set()
    assert (await task).result == "stale"


async def test_who_lost_the_right_meanwhile_changes_nothing(w: World, held: Held) -> None:
    owner, b = await w.device(), await w.device(account := await w.account())
    gen, _ = await owner.text("x", b"text\n")
    task = asyncio.create_task(b.one(costly(b, "x", gen)))
    await held.until_begun()
    async with w.node.db.write() as tx:
        who = tables["collaborator"].c.account_id == bindparam("who")
        await tx.run(delete(tables["collaborator"]).where(who), who=account)
    held.go.set()
    with pytest.raises(NotFound):
        await task
    assert (await owner.bootstrap()).seq == 1


async def test_refusals_among_costly_edits_are_kept_and_the_others_count(w: World) -> None:
    a = await w.device()
    gen, lane = await a.text("x", b"text\n")
    other, _ = await a.text("y", b"text\n")
    good = a.edit("x", lane, gen, b"text\nmore\n")
    nonsense = a.make("edit_text", "x", gen, epoch=0, ops=[b64u(b"\1\2\3")])
    wide = costly(a, "y", other)
    again = a.make("edit_text", "y", other, epoch=0, ops=wide.ops, typed=True)  # its clocks are taken
    last = a.edit("x", lane, gen, b"text\nmore and more\n")
    answers = await a.send(good, nonsense, wide, again, last)
    assert [one.result for one in answers] == ["ok", "refused", "ok", "refused", "ok"]
    assert await a.send(good, nonsense, wide, again, last) == answers
    assert (await text_of(a, "x", gen)) == "text\nmore and more\n"


async def test_an_edit_of_a_file_of_the_same_batch_is_refused(w: World) -> None:
    """Its lane is named by an answer that nobody has yet; somebody may guess it."""
    a = await w.device()
    created = await a.create("x", b"text\n")
    lane = Lane.genesis(a.branch_id, 1, 0, b"text\n")
    answers = await a.send(created, a.edit("x", lane, 1, b"text\nmore\n"))
    assert [one.result for one in answers] == ["ok", "refused"]


async def test_who_hangs_up_meanwhile_may_send_again(w: World, held: Held) -> None:
    a = await w.device()
    gen, _ = await a.text("x", b"text\n")
    edit = costly(a, "x", gen)
    task = asyncio.create_task(a.one(edit))
    await held.until_begun()
    task.cancel()
    held.go.set()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert (await a.bootstrap()).seq == 1
    assert (await a.one(edit)).result == "ok"
    assert len(await text_of(a, "x", gen)) == 5 + 600


async def test_work_beyond_the_budget_is_refused_with_a_time(w: World) -> None:
    w.node.share.close()
    w.node.share = Share(Limiter())
    a, b = await w.device(), await w.device(await w.account())
    gen, lane = await a.text("x", b"text\n")
    w.node.share.count_spent(a.view.me.account_id, WORK.burst + 1)
    edit = a.edit("x", lane, gen, b"more\n")
    for _ in range(2):
        with pytest.raises(RateLimited) as refused:
            await a.one(edit)
        assert refused.value.extra["retry_after"] >= 1
    other = (await b.fetch("x", gen))[1]
    assert (await b.one(b.edit("x", other, gen, b"of b\n"))).result == "ok"


@pytest.mark.parametrize("seed", range(4))
async def test_two_processes_land_on_the_same_lanes(
    tmp_path: Path, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Devices at two nodes of one database edit the same files at once; whatever is small and costly for
    each. All that was acknowledged is there, once, and both nodes tell the same."""
    dice = random.Random(seed)
    monkeypatch.setattr(lane_work, "SMALL", dice.choice([0, 1500, 50_000]))
    async with world(tmp_path) as one, opened(tmp_path) as second:
        two = World(second, one.repo_id, one.branch_id, one.owner)
        devices = [await one.device(), await two.device(), await one.device(), await two.device()]
        files = [(path, *(await devices[0].text(path, b"\n"))) for path in ("x", "y")]
        sent: dict[str, list[str]] = {"x": [], "y": []}

        async def work(number: int, device: Device) -> None:
            own = {path: lane.copy(device.replica) for path, _, lane in files}
            mine = random.Random(seed * 10 + number)
            for step in range(12):
                path, gen, _ = mine.choice(files)
                word = f"<{number}.{step}>"
                text = own[path].text()
                new = word.encode() + text if mine.random() < 0.5 else text + word.encode()
                update = device.edit(path, own[path], gen, new)
                while True:
                    with contextlib.suppress(Unavailable):
                        answer = await device.one(update)
                        break
                assert answer.result == "ok", answer
                sent[path].append(word)
                if mine.random() < 0.1:
                    device.world.node.lanes.forget(list(device.world.node.lanes._lanes))

        await asyncio.gather(*(work(number, device) for number, device in enumerate(devices)))
        for path, gen, _ in files:
            found = [await text_of(device, path, gen) for device in devices]
            assert len(set(found)) == 1
            assert all(found[0].count(word) == 1 for word in sent[path])
