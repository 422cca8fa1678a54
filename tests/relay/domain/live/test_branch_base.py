"""Branches made from a seal: what they cost, and that they behave as if each of their files had a row."""

from __future__ import annotations

import random
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from sqlalchemy import LargeBinary, String, func, select

from localstore.core.lane.lane import Lane
from localstore.core.model import limits
from localstore.core.model.live import LaneName as LaneAsked
from localstore.core.model.live import LanesRequest
from localstore.core.model.ref import RefCreate, RefUpdate
from localstore.core.model.seal import SealBudgetExceeded, SealChange, TreeDelta
from relay.base.locks import Locks
from relay.caller import View
from relay.db.schema import tables
from relay.domain.live import branch_base, landing, lane
from relay.domain.repository import ref as refs
from relay.domain.upkeep import upkeep, verification
from tests.relay.domain.live.live_world import Device, World, world
from tests.relay.domain.live.test_landing import Tree, finalize, land, now, prepare

FILES: Tree = {"a/x": b"ax", "a/y": b"ay", "a/d/z": b"z", "b": b"b", "bin": b"\0bytes"}
OF_BRANCHES = ("lane", "lane_dir", "lane_log", "lane_final", "checkpoint", "prepare", "replica")


@pytest.fixture
async def w(tmp_path: Path) -> AsyncIterator[World]:
    async with world(tmp_path) as made:
        yield made


async def branched(a: Device, head: str, name: str = "side") -> Device:
    """A device on a new branch from this seal."""
    await refs.create(a.view, RefCreate(type="branch", name=name, head=head))
    found = await a.world.device()
    found.branch, found.replica = name, 0
    await found.bootstrap()
    return found


async def rows_of(device: Device) -> dict[str, tuple[int, int]]:
    return {row.path: (row.gen, row.ver) for row in (await device.bootstrap()).rows}


async def sizes(w: World) -> dict[str, tuple[int, int]]:
    """Rows of every table, and the bytes of their texts and blobs."""
    found = {}
    async with w.node.db.read() as tx:
        for name, table in tables.items():
            wide = [func.length(one) for one in table.c if isinstance(one.type, String | LargeBinary)]
            weight = func.coalesce(func.sum(sum([func.coalesce(one, 0) for one in wide], start=0)), 0)
            found[name] = tuple(await tx.one(select(func.count(), weight).select_from(table)) or ())
    return found  # type: ignore[return-value]


async def checked(w: World) -> None:
    assert [line async for line in verification.frontier.check(w.node.db, w.node.objects)] == []


async def test_a_branch_writes_nothing_for_its_files_and_leaves_nothing_when_deleted(w: World) -> None:
    a = await w.device()
    blob = await w.put(b"x")
    changes = [SealChange(path=f"d{n % 50}/f{n}", kind="text", digest=blob, size=1) for n in range(5000)]
    made = await finalize(a, await prepare(a, None, TreeDelta(message="many", changes=changes)))
    head = made.items[-1].id
    before = await sizes(w)
    b = await branched(a, head)
    assert len((await b.bootstrap()).rows) == 5000
    after = await sizes(w)
    grown = {name: (after[name][0] - rows, after[name][1] - size) for name, (rows, size) in before.items()}
    assert {name for name, (rows, _) in grown.items() if rows} == {"ref", "event", "device_key", "replica"}
    assert sum(size for _, size in grown.values()) < 2000
    found = await rows_of(b)
    texts = [
        b.edit(path, Lane.genesis(b.branch_id, gen, 0, b"x"), gen, b"xy") for path, (gen, _) in found.items()
    ]
    await b.send(*texts[:400])
    sealed = await b.seal(head)
    await b.send(b.delete("d0/f4950", found["d0/f4950"][0], 1), await b.create("new/file", b"n"), turn="t")
    await b.prepare(sealed.id)
    await refs.delete(a.view, "branch", "side", None, discard_live=True)
    upkeep.register(w.node, lambda: None)
    while await w.node.jobs.run_due():
        pass
    left = await sizes(w)
    for name in OF_BRANCHES:
        assert left[name][0] == before[name][0] + (name == "replica"), name  # it stood on main first
    assert left["update_answer"] == before["update_answer"]
    assert left["live_batch"][0] == 1  # what the seal took in
    assert (await w.files(sealed.id))["d49/f4999"] == b"x"


async def test_files_of_the_base_are_edited_deleted_and_replaced_as_others_are(w: World) -> None:
    a = await w.device()
    head = await land(a, None, FILES)
    b = await branched(a, head)
    found = await rows_of(b)
    assert len({gen for gen, _ in found.values()}) == len(FILES)
    assert all(
        branch_base.NUMBERS <= gen < 2 * branch_base.NUMBERS and ver == 1 for gen, ver in found.values()
    )
    gen = found["a/x"][0]
    text = Lane.genesis(b.branch_id, gen, 0, b"ax")
    assert (await b.one(b.edit("a/x", text, gen + 1, b"axe"))).result == "stale"
    first = await b.one(
        b.edit("a/x", Lane.genesis(b.branch_id, gen, 0, b"ax"), gen, b"axe", base=1, typed=False)
    )
    assert (first.result, first.gen, first.seq) == ("ok", gen, 2)
    assert [row.path for row in (await b.bootstrap(since=1)).rows] == ["a/x"]
    c = await w.device()
    c.branch, c.replica = "side", 0
    await c.bootstrap()
    assert (await c.one(c.delete("a/x", gen, 1))).result == "stale"
    assert (await c.one(await c.create("a/y/below", b"1"))).result == "stale"
    assert (await c.one(await c.create("a", b"1"))).result == "stale"
    same = await c.one(await c.create("a/y", b"ay"))
    assert (same.result, same.gen) == ("ok", found["a/y"][0])
    assert (await c.one(await c.blob("bin", b"\0other", found["bin"][0], 1))).result == "ok"
    assert (await c.one(c.delete("nowhere", 1, 0))).result == "ok"
    asked = LanesRequest(lanes=[LaneAsked(path="b", gen=found["b"][0]), LaneAsked(path="a", gen=1)])
    told = await lane.read(b.view, "side", asked)
    assert [one.path for one in told.lanes] == ["b"] and told.missing == ["a"]
    await checked(w)
    sealed = await b.seal(head)
    assert await w.files(sealed.id) == {**FILES, "a/x": b"axe", "bin": b"\0other"}


async def test_a_directory_of_the_base_is_a_file_once_nothing_is_left_in_it(w: World) -> None:
    a = await w.device()
    b = await branched(a, await land(a, None, FILES))
    found = await rows_of(b)
    for path in ("a/x", "a/y"):
        assert (await b.one(b.delete(path, found[path][0], 1))).result == "ok"
        assert (await b.one(await b.create("a", b"1"))).result == "stale"
    assert (await b.one(b.delete("a/d/z", found["a/d/z"][0], 1))).result == "ok"
    answer = await b.one(await b.create("a", b"now a file"))
    assert answer.result == "ok"
    assert (await b.one(await b.create("a/x", b"1"))).result == "stale"
    await checked(w)
    assert (await b.one(b.delete("a", answer.gen, answer.seq))).result == "ok"
    assert (await b.one(await b.create("a/d", b"another"))).result == "ok"
    await checked(w)
    assert (await now(b)).keys() == {"a/d", "b", "bin"}


async def test_two_lanes_with_one_number_are_kept_apart(w: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(branch_base, "_first_number", lambda branch_id, directory: 5)
    a = await w.device()
    head = await land(a, None, {"a/x": b"same", "b/x": b"same", "c/x": b"same"})
    b = await branched(a, head)
    gens = {gen for gen, _ in (await rows_of(b)).values()}
    assert len(gens) == 1
    (gen,) = gens

    def edit(path: str, text: bytes) -> object:
        return b.edit(path, Lane.genesis(b.branch_id, gen, 0, b"same"), gen, text)

    answers = await b.send(edit("a/x", b"same a"), edit("b/x", b"same b"))  # type: ignore[arg-type]
    assert [one.result for one in answers] == ["ok", "stale"]
    assert (await b.one(edit("c/x", b"same c"))).result == "stale"  # type: ignore[arg-type]
    anew = (await rows_of(b))["b/x"][0]
    again = b.edit("b/x", Lane.genesis(b.branch_id, anew, 0, b"same"), anew, b"same b")
    assert (await b.one(again)).result == "ok"
    await checked(w)
    sealed = await b.seal(head)
    assert await w.files(sealed.id) == {"a/x": b"same a", "b/x": b"same b", "c/x": b"same"}


async def test_a_seal_lands_on_files_without_rows(w: World) -> None:
    a = await w.device()
    first = await land(a, None, FILES)
    second = await land(
        a, first, {"a/x": b"ax 2", "a/y": None, "a/d/z": None, "a/d": b"file", "bin": b"\0two", "n": b"n"}
    )
    b = await branched(a, first)
    gen = (await rows_of(b))["a/d/z"][0]
    assert (
        await b.one(b.edit("a/d/z", Lane.genesis(b.branch_id, gen, 0, b"z"), gen, b"z edited"))
    ).result == "ok"
    await refs.update(a.view, "branch", "side", RefUpdate(head=second, expected_head=first))
    found = await now(b)
    (copy,) = found.keys() - {"a/x", "a/d", "b", "bin", "n"}
    assert found[copy] == b"z edited" and ".sync-conflict-" in copy
    assert {path: found[path] for path in ("a/x", "a/d", "b", "bin", "n")} == {
        "a/x": b"ax 2",
        "a/d": b"file",
        "b": b"b",
        "bin": b"\0two",
        "n": b"n",
    }
    await checked(w)


async def test_a_landing_is_worked_out_again_where_its_files_changed_meanwhile(
    w: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    a = await w.device()
    first = await land(a, None, {"x": b"one\ntwo\nthree\n", "y": b"y"})
    second = await land(a, first, {"x": b"one\ntwo\nTHREE\n"})
    b = await branched(a, first)
    found = await rows_of(b)
    worked, edits = (
        landing._compute,
        [("y", b"y", b"y!"), ("x", b"one\ntwo\nthree\n", b"ONE\ntwo\nthree\n")],
    )
    rounds = []

    async def interrupted(view: View, wanted: landing.LandingNeeded) -> landing.WorkedLanding:
        made = await worked(view, wanted)
        rounds.append(made)
        if edits:  # of the file that lands, then of another one; in another process
            path, old, new = edits.pop()
            update = b.edit(path, Lane.genesis(b.branch_id, found[path][0], 0, old), found[path][0], new)
            turns, w.node.lanes._turns = w.node.lanes._turns, Locks()
            assert (await b.one(update)).result == "ok"
            w.node.lanes._turns = turns
        return made

    monkeypatch.setattr(landing, "_compute", interrupted)
    await refs.update(a.view, "branch", "side", RefUpdate(head=second, expected_head=first))
    assert len(rounds) == 2  # the edit of another file is none of its business
    assert await now(b) == {"x": b"ONE\ntwo\nTHREE\n", "y": b"y!"}
    await checked(w)


async def test_a_tree_is_counted_with_the_base_against_the_cap(
    w: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    a = await w.device()
    head = await land(a, None, FILES)
    b = await branched(a, head)
    monkeypatch.setattr(limits, "TREE_ENTRIES", len(FILES))
    await b.send(await b.create("one more", b"1"))
    with pytest.raises(SealBudgetExceeded):
        await b.prepare(head)
    await b.send(b.delete("b", (await rows_of(b))["b"][0], 1))
    assert len(await w.files((await b.seal(head)).id)) == len(FILES)


@pytest.mark.parametrize("seed", range(8))
async def test_a_branch_from_a_seal_answers_as_one_with_a_row_for_each_file(w: World, seed: int) -> None:
    dice = random.Random(seed)
    names = ["a", "a/b", "a/b/c", "a/d", "e/f", "e/g", "h"]
    a = await w.device()
    start = {}
    for path in dice.sample(names, len(names)):
        answer = await a.one(await a.create(path, path.encode()))
        if answer.result == "ok":
            start[path] = path.encode()
    head = (await a.seal()).id
    b = await branched(a, head)
    for _ in range(40):
        path, kind = dice.choice(names), dice.choice(["create", "delete", "edit", "blob", "seal"])
        told = []
        for device in (a, b):
            row = {one.path: one for one in (await device.bootstrap()).rows}.get(path)
            gen, ver = (row.gen, row.ver) if row else (1, 0)
            match kind:
                case "create":
                    update = await device.create(path, b"new", gen, ver)
                case "blob":
                    update = await device.blob(path, b"\0", gen, ver)
                case "edit" if row and row.kind == "text":
                    _, text = await device.fetch(path, gen)
                    state = (await device.fetch(path, gen))[0]
                    update = device.edit(path, text, gen, text.text() + b"+", state.epoch)
                case "seal":
                    made = await device.prepare(device.head or head)
                    if not made.unchanged:
                        device.head = (await device.finalize(made)).id
                    continue
                case _:
                    update = device.delete(path, gen, ver)
            answer = await device.one(update)
            told.append((answer.result, answer.digest, answer.epoch))
        assert len(set(told)) <= 1, (kind, path)
        assert await now(a) == await now(b)
    await checked(w)
