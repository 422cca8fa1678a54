"""Seals from explicit trees, and what becomes of live edits where they land."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from localstore.core import paths
from localstore.core.encoding import b64u, unb64u
from localstore.core.errors import Invalid, NotText, PathInvalid, SignatureInvalid
from localstore.core.lane.lane import Lane
from localstore.core.model.base import Page
from localstore.core.model.history import Seal
from localstore.core.model.ref import StaleHead
from localstore.core.model.seal import (
    FinalizeSealsRequest,
    PayloadMissing,
    PreparedSeals,
    PrepareSealsRequest,
    SealChange,
    TreeDelta,
)
from localstore.core.validation import check_members
from relay.domain.live import landing
from relay.domain.sealing import trees
from tests.patience import PATIENCE
from tests.relay.domain.live.live_world import Device, World, world

Tree = dict[str, bytes | None]


@pytest.fixture
async def w(tmp_path: Path) -> AsyncIterator[World]:
    async with world(tmp_path) as made:
        yield made


async def delta(w: World, changes: Tree, **members: str) -> TreeDelta:
    listed = []
    for path, data in changes.items():
        if data is None:
            listed.append(SealChange(path=path, kind=None))
        else:
            kind = "blob" if b"\0" in data else "text"
            listed.append(SealChange(path=path, kind=kind, digest=await w.put(data), size=len(data)))
    return TreeDelta(message="landed", changes=listed, **members)


async def prepare(a: Device, head: str | None, *deltas: TreeDelta) -> PreparedSeals:
    body = PrepareSealsRequest(branch="main", device_key_id=a.key.id, expected_head=head, seals=list(deltas))
    return await trees.prepare(a.view, check_members(body))


async def finalize(a: Device, made: PreparedSeals) -> Page[Seal]:
    body = FinalizeSealsRequest(
        prepare_id=made.prepare_id,
        device_key_id=a.key.id,
        signatures=[b64u(a.key.sign(unb64u(one.bytes))) for one in made.seals],
    )
    return await trees.finalize(a.view, body)


async def land(a: Device, head: str | None, changes: Tree) -> str:
    return (await finalize(a, await prepare(a, head, await delta(a.world, changes)))).items[-1].id


async def now(a: Device) -> dict[str, bytes]:
    """The frontier as a device would write it to disk."""
    found = {}
    for row in (await a.bootstrap()).rows:
        if row.kind == "text":
            found[row.path] = (await a.fetch(row.path, row.gen))[1].text()
        else:
            found[row.path] = await a.world.node.objects.read(bytes.fromhex(row.digest), a.world.repo_id)
    return found


async def edit(a: Device, path: str, new: bytes) -> None:
    (row,) = [row for row in (await a.bootstrap()).rows if row.path == path]
    state, lane = await a.fetch(path, row.gen)
    assert (await a.one(a.edit(path, lane, row.gen, new, epoch=state.epoch))).result == "ok"


async def test_a_chain_of_seals_lands_at_once_and_becomes_the_frontier(w: World) -> None:
    a = await w.device()
    one = await delta(w, {"d/x": b"1", "y": b"y"}, git_id="a" * 40, git_raw="b" * 64)
    two = await delta(w, {"d/x": b"12", "y": None, "z": b"\0"})
    made = await prepare(a, None, one, two)
    first, second = (await finalize(a, made)).items
    assert (first.parents, second.parents) == ([], [first.id])
    assert first.provenance.git_id == "a" * 40
    assert await w.files(first.id) == {"d/x": b"1", "y": b"y"}
    assert await w.files(second.id) == await now(a) == {"d/x": b"12", "z": b"\0"}
    assert (await a.prepare(second.id)).unchanged
    assert [one.id for one in (await finalize(a, made)).items] == [first.id, second.id]


async def test_live_text_takes_the_change_and_stays_unsealed(w: World) -> None:
    a, b = await w.device(), await w.device()
    head = await land(a, None, {"x": b"one, two three", "quiet": b"q"})
    await edit(b, "x", b"one, two THREE")
    merged = await land(a, head, {"x": b"ONE, two three", "quiet": b"qq"})
    assert await w.files(merged) == {"x": b"ONE, two three", "quiet": b"qq"}
    assert await now(b) == {"x": b"ONE, two THREE", "quiet": b"qq"}
    sealed = await b.seal(merged)
    assert await w.files(sealed.id) == {"x": b"ONE, two THREE", "quiet": b"qq"}


async def test_the_same_live_edit_is_taken_once(w: World) -> None:
    a, b = await w.device(), await w.device()
    head = await land(a, None, {"x": b"timeout = 30\n"})
    await edit(b, "x", b"timeout = 60\n")
    await land(a, head, {"x": b"timeout = 60\n"})
    assert await now(b) == {"x": b"timeout = 60\n"}


async def test_a_live_text_that_stands_against_the_seal_moves_to_a_conflict_name_whole(w: World) -> None:
    a, b = await w.device(), await w.device()
    head = await land(a, None, {"x": b"top\n\ntimeout = 30\n"})
    await edit(b, "x", b"TOP\n\ntimeout = 45\n")
    await land(a, head, {"x": b"top\n\ntimeout = 60\n"})
    after = await now(b)
    assert after.pop("x") == b"top\n\ntimeout = 60\n"
    [(name, kept)] = after.items()
    assert ".sync-conflict-" in name and kept == b"TOP\n\ntimeout = 45\n"


async def test_an_edit_in_flight_meets_a_landed_change_in_the_same_lane(w: World) -> None:
    a, b = await w.device(), await w.device()
    head = await land(a, None, {"x": b"one two three"})
    gen = (await b.bootstrap()).rows[0].gen
    mine = Lane.genesis(b.branch_id, gen, 0, b"one two three")
    late = b.edit("x", mine, gen, b"one two THREE", typed=False)
    await land(a, head, {"x": b"ONE two three"})
    refused = await b.one(late)
    assert (refused.result, refused.code) == ("refused", "lane_moved")
    assert await now(b) == {"x": b"ONE two three"}


async def test_a_live_edit_outlives_a_delete(w: World) -> None:
    a, b = await w.device(), await w.device()
    head = await land(a, None, {"x": b"1", "y": b"2"})
    await edit(b, "x", b"1 live")
    merged = await land(a, head, {"x": None, "y": None})
    assert await now(b) == {"x": b"1 live"}
    assert await w.files((await b.seal(merged)).id) == {"x": b"1 live"}


async def test_other_live_versions_move_to_a_conflict_name(w: World) -> None:
    a, b = await w.device(), await w.device()
    head = await land(a, None, {"x": b"1", "bin": b"\0"})
    await edit(b, "x", b"1 live")
    (gen,) = [row.gen for row in (await b.bootstrap()).rows if row.path == "bin"]
    await b.send(
        await b.blob("bin", b"\0live", gen, gen),
        await b.create("dir/f", b"in the way"),
        await b.create("up", b"above"),
    )
    assert set(await now(b)) == {"x", "bin", "dir/f", "up"}
    await land(a, head, {"x": b"\0bytes", "bin": b"\0sealed", "dir": b"a file", "up/below": b"under"})
    after = await now(b)
    sealed = {"x": b"\0bytes", "bin": b"\0sealed", "dir": b"a file", "up/below": b"under"}
    assert {path: after[path] for path in sealed} == sealed
    kept = {path: data for path, data in after.items() if path not in sealed}
    assert all(".sync-conflict-" in path for path in kept)
    assert set(kept.values()) == {b"1 live", b"\0live", b"in the way", b"above"}


async def test_live_files_leave_a_directory_that_becomes_a_file(w: World) -> None:
    a = await w.device()
    head = await land(a, None, {"x": b"1"})
    live = {f"d/{one}": one.encode() for one in ("f", "g/h", "g_h")} | {"deep/d/f.txt": b"deep"}
    await a.send(*[await a.create(path, data) for path, data in live.items()])
    head = await land(a, head, {"d": b"a file", "deep/d": b"another"})
    after = await now(a)
    sealed = {"x": b"1", "d": b"a file", "deep/d": b"another"}
    assert {path: after.pop(path) for path in sealed} == sealed
    assert sorted(after.values()) == sorted(live.values())
    assert not any(path.startswith(("d/", "deep/d/")) for path in after)
    assert await w.files((await a.seal(head)).id) == sealed | after


async def test_a_seal_that_brings_the_very_conflict_name_takes_nothing(
    w: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    a = await w.device()
    head = await land(a, None, {"x": b"\0"})
    at = 1_700_000_000_000
    name = paths.conflict_name("x", datetime.fromtimestamp(at / 1000, UTC), a.key.id)
    (gen,) = [row.gen for row in (await a.bootstrap()).rows]
    await a.send(await a.blob("x", b"\0live", gen, gen))
    monkeypatch.setattr(landing, "now_ms", lambda: at)
    await land(a, head, {"x": b"\0sealed", name: b"\0taken"})
    assert sorted((await now(a)).values()) == [b"\0live", b"\0sealed", b"\0taken"]


async def test_what_is_wrong_with_a_tree_is_said_before_anything_is_signed(w: World) -> None:
    a = await w.device()
    head = await land(a, None, {"x": b"1"})
    absent = SealChange(path="y", kind="text", digest="0" * 64, size=1)
    with pytest.raises(PayloadMissing) as missing:
        await prepare(a, head, TreeDelta(message="m", changes=[absent]))
    assert missing.value.extra["missing"] == ["0" * 64]
    raw = SealChange(path="y", kind="text", digest=await w.put(b"\xff"), size=1)
    with pytest.raises(NotText):
        await prepare(a, head, TreeDelta(message="m", changes=[raw]))
    with pytest.raises(PathInvalid):
        await prepare(a, head, await delta(w, {"x/y": b"under a file"}))
    with pytest.raises(StaleHead):
        await prepare(a, None, await delta(w, {"z": b""}))
    with pytest.raises(Invalid):
        await prepare(a, head, TreeDelta(message="m", changes=[], parents=["f" * 64]))
    with pytest.raises(Invalid):
        await prepare(a, head)


async def test_a_lost_race_or_a_bad_signature_changes_nothing(w: World) -> None:
    a, b = await w.device(), await w.device()
    head = await land(a, None, {"x": b"1"})
    mine = await prepare(a, head, await delta(w, {"x": b"a"}))
    theirs = await prepare(b, head, await delta(w, {"x": b"b"}))
    forged = FinalizeSealsRequest(
        prepare_id=mine.prepare_id,
        device_key_id=a.key.id,
        signatures=[b64u(b.key.sign(unb64u(mine.seals[0].bytes)))],
    )
    with pytest.raises(SignatureInvalid):
        await trees.finalize(a.view, forged)
    await finalize(b, theirs)
    with pytest.raises(StaleHead):
        await finalize(a, mine)
    assert await now(a) == {"x": b"b"}


async def test_a_small_seal_waits_for_nobodys_costly_edits(w: World) -> None:
    a = await w.device()
    async with w.node.share._turns.turn("somebody else"), asyncio.timeout(PATIENCE):
        head = await land(a, None, {"x": b"one\n", "y": b"\0"})
        await land(a, head, {"x": b"two\n", "y": None})
    assert await now(a) == {"x": b"two\n"}


async def test_a_seal_that_meets_live_edits_waits_for_its_turn(w: World) -> None:
    a = await w.device()
    head = await land(a, None, {"x": b"one\ntwo\n"})
    await edit(a, "x", b"one\ntwo\nthree\n")
    with pytest.raises(TimeoutError):
        async with w.node.share._turns.turn("somebody else"), asyncio.timeout(0.3):
            await land(a, head, {"x": b"zero\none\ntwo\n"})
