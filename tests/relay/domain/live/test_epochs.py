"""Epochs: what a seal begins anew, and what it keeps of before for those who are behind."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from sqlalchemy import select

from localstore.core.encoding import b64u, unb64u
from localstore.core.lane.carry import carry
from localstore.core.lane.lane import Lane
from localstore.core.model import limits
from localstore.core.model.live import LaneName as LaneAsked
from localstore.core.model.live import LanesRequest
from relay.caller import View
from relay.db.schema import tables
from relay.domain.live import epochs
from relay.domain.live import lane as lanes
from relay.domain.upkeep.verification.frontier import check as audit_frontier
from relay.memory.lanes import LaneKey
from tests.relay.domain.live.live_world import World, world


@pytest.fixture
async def w(tmp_path: Path) -> AsyncIterator[World]:
    async with world(tmp_path) as made:
        yield made


async def states_kept(w: World) -> list[bool | None]:
    """Of the ends of epochs, in their order: whether a state is kept, None where the log is."""
    async with w.node.db.read() as tx:
        ends = tables["lane_final"]
        found = await tx.all(select(ends.c.state).order_by(ends.c.gen, ends.c.epoch))
    return [None if one[0] is None else True for one in found]


async def logged(w: World) -> list[int]:
    """Epochs of all operations."""
    async with w.node.db.read() as tx:
        return [one[0] for one in await tx.all(select(tables["lane_log"].c.epoch))]


@pytest.mark.parametrize("rest", [b"", b" more" * 200], ids=["kept as its state", "kept as its log"])
async def test_a_seal_starts_a_new_epoch_and_an_old_one_hops_over(w: World, rest: bytes) -> None:
    a, b = await w.device(), await w.device()
    gen, mine = await a.text("x", b"one two" + rest)
    behind = Lane.genesis(b.branch_id, gen, 0, b"one two" + rest)
    await a.one(a.edit("x", mine, gen, b"ONE two" + rest))
    made = await a.seal()
    assert await states_kept(w) == [None if rest else True]
    late = b.edit("x", behind, gen, b"one TWO" + rest)
    assert (await b.one(late)).result == "epoch"
    state, current = await b.fetch("x", gen, epoch=0)
    assert (state.epoch, state.state, list(state.finals)) == (1, None, ["0"])
    final = Lane.load(unb64u(state.finals["0"].state or ""))
    assert final.text() == current.text() == b"ONE two" + rest
    hop = carry(final, [unb64u((late.ops or [""])[0])], b.replica, current)
    assert hop is not None
    update_ = b.make("edit_text", "x", gen, epoch=1, ops=[b64u(hop)], typed=True)
    assert (await b.one(update_)).result == "ok"
    assert (await b.fetch("x", gen))[1].text() == b"ONE TWO" + rest
    assert await w.files((await b.seal(made.id)).id) == {"x": b"ONE TWO" + rest}


async def test_an_epoch_of_many_edits_ends_as_its_state(w: World) -> None:
    a = await w.device()
    long = b"some text " * 100
    gen, lane = await a.text("x", long)
    for n in range(5):
        await a.one(a.edit("x", lane, gen, b"%d " % n + long))
    await a.seal()
    assert await states_kept(w) == [True]
    assert await logged(w) == []
    state, _ = await a.fetch("x", gen, epoch=0)
    assert Lane.load(unb64u(state.finals["0"].state or "")).text() == b"4 " + long


async def test_retained_logs_are_bounded_and_give_the_ends_of_their_epochs(w: World) -> None:
    a = await w.device()
    long = b"some text " * 100
    gen, _ = await a.text("x", long)
    head = None
    for epoch in range(4):
        _, lane = await a.fetch("x", gen)
        await a.one(a.edit("x", lane, gen, b"%d " % epoch + long, epoch=epoch))
        w.node.lanes.forget([LaneKey(a.branch_id, gen, epoch)])
        head = (await a.seal(head)).id
    assert await states_kept(w) == [None, None]
    assert sorted(await logged(w)) == [2, 3]
    state, _ = await a.fetch("x", gen, epoch=1)
    ends = {epoch: Lane.load(unb64u(end.state or "")).text() for epoch, end in state.finals.items()}
    assert ends == {"2": b"2 " + long, "3": b"3 " + long}
    assert [line async for line in audit_frontier(w.node.db, w.node.objects)] == []


@pytest.mark.parametrize("rest", [b"", b" more" * 200], ids=["kept as states", "kept as logs"])
async def test_ends_that_are_too_much_for_one_answer_are_left_out(
    w: World, monkeypatch: pytest.MonkeyPatch, rest: bytes
) -> None:
    a = await w.device()
    gens = []
    for name in "xyz":
        gen, lane = await a.text(name, b"1" + rest)
        await a.one(a.edit(name, lane, gen, b"2" + rest))
        gens.append(gen)
    await a.seal()
    state, _ = await a.fetch("x", gens[0], epoch=0)
    monkeypatch.setattr(epochs, "ENDS_AT_ONCE", 2 * max(len(rest) + 1, len(state.finals["0"].state or "")))
    body = LanesRequest(
        lanes=[LaneAsked(path=name, gen=gen, epoch=0) for name, gen in zip("xyz", gens, strict=True)]
    )
    found = (await lanes.read(a.view, a.branch, body)).lanes
    assert sorted(len(one.finals) for one in found) == [0, 1, 1]


async def test_a_lane_touched_since_prepare_keeps_its_epoch(w: World) -> None:
    a = await w.device()
    gen, lane = await a.text("x", b"1")
    await a.one(a.edit("x", lane, gen, b"12"))
    prepared = await a.prepare()
    await a.one(a.edit("x", lane, gen, b"123"))
    await a.finalize(prepared)
    state, there = await a.fetch("x", gen)
    assert (state.epoch, there.text()) == (0, b"123")


async def test_retained_epochs_are_bounded_and_old_logs_go(w: World) -> None:
    a = await w.device()
    gen, _ = await a.text("x", b"0")
    head = None
    for epoch in range(4):
        _, lane = await a.fetch("x", gen)
        await a.one(a.edit("x", lane, gen, b"0" * (epoch + 2), epoch=epoch))
        head = (await a.seal(head)).id
    state, _ = await a.fetch("x", gen, epoch=0)
    assert sorted(state.finals) == ["2", "3"] and len(state.finals) == limits.EPOCHS_RETAINED
    assert await logged(w) == []


async def test_states_of_long_logs_are_made_outside_of_the_transaction(
    w: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    a, b = await w.device(), await w.device()
    lanes = {path: await a.text(path, b"short") for path in ("x", "y")}
    for n in range(12):
        for path, (gen, lane) in lanes.items():
            assert (await a.one(a.edit(path, lane, gen, lane.text() + b"%d" % n))).result == "ok"
    prepared, made, busy = await a.prepare(), epochs.compute_states, []

    async def meanwhile(view: View, wanted: epochs.StatesNeeded) -> epochs.States:
        busy.append({row.path for row in wanted.rows})
        gen, _ = lanes["y"]
        _, mine = await b.fetch("y", gen)
        assert (await b.one(b.edit("y", mine, gen, mine.text() + b" later"))).result == "ok"  # nobody waits
        return await made(view, wanted)

    monkeypatch.setattr(epochs, "compute_states", meanwhile)
    sealed = await a.finalize(prepared)
    assert busy == [{"x", "y"}]
    assert (await w.files(sealed.id))["y"] == b"short" + b"".join(b"%d" % n for n in range(12))
    rows = {row.path: row for row in (await a.bootstrap()).rows}
    assert (rows["x"].epoch, rows["y"].epoch) == (1, 0)  # whoever was touched since goes on
    state, _ = await a.fetch("x", lanes["x"][0], epoch=0)
    assert Lane.load(unb64u(state.finals["0"].state or "")).text() == lanes["x"][1].text()
    assert (await b.fetch("y", lanes["y"][0]))[1].text().endswith(b" later")


async def test_of_too_many_long_logs_some_stay(w: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(epochs, "STATES_AT_ONCE", 20)
    a = await w.device()
    lanes = {path: await a.text(path, text) for path, text in (("x", b"short"), ("y", b"not so short"))}
    for n in range(5):
        for path, (gen, lane) in lanes.items():
            assert (await a.one(a.edit(path, lane, gen, lane.text() + b"%d" % n))).result == "ok"
    await a.seal()
    async with w.node.db.read() as tx:
        final = tables["lane_final"]
        kept = await tx.all(select(final.c.gen, final.c.state.is_not(None)))
    assert dict(kept) == {lanes["x"][0]: True, lanes["y"][0]: False}
    for path, (gen, lane) in lanes.items():
        state, _ = await a.fetch(path, gen, epoch=0)
        assert Lane.load(unb64u(state.finals["0"].state or "")).text() == lane.text()
