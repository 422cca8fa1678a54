"""What little effort of a client may cost the node: memory that does not grow with it, a free event loop."""

from __future__ import annotations

import asyncio
import threading
import tracemalloc
from collections.abc import AsyncIterator
from pathlib import Path

import msgspec
import pytest
from sqlalchemy import func, select

from localstore.core import tree
from localstore.core.encoding import b64u
from localstore.core.errors import NotFound, TooLarge
from localstore.core.lane import update_format
from localstore.core.lane.lane import SPLITS, Lane
from localstore.core.lane.update import LiveUpdate
from localstore.core.model import limits
from localstore.core.model.limits import MIB
from localstore.core.model.seal import SealChange, TreeDelta
from localstore.core.tree import change
from relay.db.live.lane import LaneRow
from relay.db.schema import tables
from relay.domain.history import sealed
from relay.domain.live import epochs
from relay.domain.live.lane_work import Bench
from relay.domain.sealing import seal, trees
from tests.relay.domain.live.live_world import Device, World, world
from tests.relay.domain.live.test_landing import finalize, land, prepare


@pytest.fixture
async def w(tmp_path: Path) -> AsyncIterator[World]:
    async with world(tmp_path) as made:
        yield made


async def flat(a: Device, count: int, above: str = "") -> str:
    """A seal of many files in one directory: the root, or `above` with a slash at its end."""
    digest = await a.world.put(b"x")
    changes = [SealChange(path=f"{above}file-{n}", kind="text", digest=digest, size=1) for n in range(count)]
    made = await finalize(a, await prepare(a, None, TreeDelta(message="flat", changes=changes)))
    return made.items[-1].id


async def single(w: World, count: int) -> list[TreeDelta]:
    """As many seals, each of which changes one file."""
    digest = await w.put(b"y")
    return [
        TreeDelta(message="one", changes=[SealChange(path=f"file-{n}", kind="text", digest=digest, size=1)])
        for n in range(count)
    ]


async def test_one_character_in_many_copies_of_a_text_is_sealed_a_portion_at_a_time(
    w: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(epochs, "PORTION", 4 * MIB)
    a = await w.device()
    text = b"a" * 4 * MIB
    await a.send(*[await a.create(f"f{n}", text) for n in range(12)])
    for row in (await a.bootstrap()).rows:
        lane = Lane.genesis(a.branch_id, row.gen, 0, text)
        assert (await a.one(a.edit(row.path, lane, row.gen, text + row.path.encode()))).result == "ok"
    tracemalloc.start()
    try:
        made = await a.finalize(await a.prepare())
        assert tracemalloc.get_traced_memory()[1] < 32 * MIB
    finally:
        tracemalloc.stop()
    assert {data[len(text) :] for data in (await w.files(made.id)).values()} == {
        f"f{n}".encode() for n in range(12)
    }


async def test_large_directories_are_changed_off_the_event_loop(
    w: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    a = await w.device()
    head = await flat(a, 3000)
    threads = set()

    def encode(directory: tree.Directory) -> bytes:
        threads.add(threading.get_ident())
        return tree.encode(directory)

    monkeypatch.setattr(change, "encode", encode)
    made = await finalize(a, await prepare(a, head, *await single(w, 3)))
    assert threads
    assert threading.get_ident() not in threads
    monkeypatch.undo()
    assert list((await w.files(made.items[-1].id)).values()).count(b"y") == 3


async def test_trees_of_one_request_are_held_up_to_a_limit(w: World, monkeypatch: pytest.MonkeyPatch) -> None:
    a = await w.device()
    head = await flat(a, 3000)
    monkeypatch.setattr(trees, "DIRECTORIES_AT_ONCE", MIB)
    with pytest.raises(TooLarge, match="prepare fewer seals at once"):
        await prepare(a, head, *await single(w, 20))
    await finalize(a, await prepare(a, head, *await single(w, 3)))


async def looks(w: World, monkeypatch: pytest.MonkeyPatch, count: int) -> int:
    """How often a row is looked at while files take the place of so many directories with live files."""
    a = await w.device()
    head = (await a.bootstrap()).sealed_head
    names = [f"{count}-{n}" for n in range(count)]
    await a.send(*[await a.blob(f"{name}/f", b"\0live") for name in names])
    digest = await w.put(b"x")
    changes = [SealChange(path=name, kind="text", digest=digest, size=1) for name in names]
    made = await prepare(a, head, TreeDelta(message="files", changes=changes))
    looked = 0

    def living(row: LaneRow) -> bool:
        nonlocal looked
        looked += 1
        return row.kind != "gone"

    with monkeypatch.context() as patch:
        patch.setattr(LaneRow, "living", property(living))
        await finalize(a, made)
    return looked


async def test_files_that_take_the_place_of_directories_do_not_look_at_every_row_for_each(
    w: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    few, many = [await looks(w, monkeypatch, count) for count in (40, 160)]
    assert many < 5 * few


async def test_live_edits_that_meet_long_texts_are_merged_up_to_a_limit(
    w: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    a = await w.device()
    head = await land(a, None, {"a": b"1\n" * MIB, "b": b"2\n" * MIB})
    for row in (await a.bootstrap()).rows:
        lane = (await a.fetch(row.path, row.gen))[1]
        assert (await a.one(a.edit(row.path, lane, row.gen, b"short\n"))).result == "ok"
    monkeypatch.setattr(limits, "LOADED_TEXTS", 5 * MIB)
    with pytest.raises(TooLarge, match="land fewer changes at once"):
        await land(a, head, {"a": b"3\n" * MIB, "b": b"4\n" * MIB})
    await land(a, head, {"a": b"3\n" * MIB})


async def edited(a: Device, text: bytes) -> tuple[int, Lane]:
    """A new file `f` and its lane."""
    answer = await a.one(await a.create("f", text))
    return answer.gen, Lane.genesis(a.branch_id, answer.gen, 0, text)


async def test_a_refused_edit_does_not_read_the_log_of_its_lane(
    w: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    a = await w.device()
    gen, lane = await edited(a, b"")
    await a.one(a.edit("f", lane, gen, b"1\n"))
    over = lane.copy().edit(a.replica, b"1\n" + b"x" * 1000)
    good = a.edit("f", lane, gen, b"1\n2\n")
    nonsense = a.make("edit_text", "f", gen, epoch=0, ops=[b64u(b"\1\2\3")])
    monkeypatch.setattr(limits, "TEXT_FILE", 500)
    half = a.make("edit_text", "f", gen, epoch=0, ops=[*(good.ops or []), b64u(b"\1\2\3")])
    long = a.make("edit_text", "f", gen, epoch=0, ops=[b64u(over or b"")])
    monkeypatch.setattr(Bench, "_build", lambda *_: pytest.fail("the lane is built again"))
    results = [one.result for one in await a.send(nonsense, half, long, good)]
    assert results == ["refused", "refused", "refused", "ok"]
    monkeypatch.undo()
    assert (await a.fetch("f", gen))[1].text() == b"1\n2\n"


async def test_edits_of_one_lane_in_one_batch_have_the_budget_of_a_few(
    w: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    a = await w.device()
    gen, lane = await edited(a, b"")
    await a.one(a.edit("f", lane, gen, b"0\n"))
    monkeypatch.setattr(limits, "UPDATE_WORK", 100)
    batch = [a.edit("f", lane, gen, b"x\n" * n) for n in range(2, 40)]
    results = [one.result for one in await a.send(*batch)]
    assert {"ok", "refused"} == set(results)
    refused = results.index("refused")
    assert [one.result for one in await a.send(a.sign(renumbered(a, batch[refused])))] == ["ok"]


async def test_as_many_costly_edits_as_a_device_sends_at_once_are_taken(
    w: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    a = await w.device()
    text = b"".join(b"line %d\n" % n for n in range(60))
    gen, lane = await edited(a, text)
    ops, works = [], []
    for number in range(limits.EDITS_AT_ONCE):
        text = b"".join(b"%d %s" % (number, line) for line in text.splitlines(keepends=True))
        ops.append(lane.edit(a.replica, text) or b"")
        works.append(update_format.work(update_format.parse(ops[-1]), 1 + SPLITS * 60 * number))
    monkeypatch.setattr(limits, "UPDATE_WORK", max(works))
    assert sum(works) > 2 * limits.UPDATE_WORK, "the work of one update would do"
    update = a.make("edit_text", "f", gen, epoch=0, ops=[b64u(one) for one in ops])
    assert [one.result for one in await a.send(update)] == ["ok"]
    assert (await a.fetch("f", gen))[1].text() == text


def renumbered(a: Device, update: LiveUpdate) -> LiveUpdate:
    a.n += 1
    return msgspec.structs.replace(update, n=a.n)


async def test_what_a_device_prepares_again_and_again_is_kept_a_few_times(w: World) -> None:
    a = await w.device()
    await a.one(await a.create("f", b"1\n"))
    made = [await a.prepare() for _ in range(3 * seal.PREPARED_AT_ONCE)]
    async with w.node.db.read() as tx:
        assert await tx.value(select(func.count()).select_from(tables["prepare"])) == seal.PREPARED_AT_ONCE
    with pytest.raises(NotFound):
        await a.finalize(made[0])
    assert (await a.finalize(made[-1])).id == made[-1].prepare_id


async def test_a_walk_over_many_files_gives_others_a_turn(w: World) -> None:
    a = await w.device()
    head = await flat(a, 3500)
    turns = 0

    async def other() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    task, seen = asyncio.create_task(other()), []
    async for _ in sealed.walk_files(a.view, (await sealed.seal(a.view, head)).root):
        seen.append(turns)
    task.cancel()
    assert len(seen) == 3500
    assert len(set(seen)) >= 4
