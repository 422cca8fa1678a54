"""Sealing the frontier: chains, races, repeats, budgets."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import msgspec
import pytest
from sqlalchemy import Table, bindparam, delete, func, select, update

from localstore.core import seal as seals
from localstore.core import tree
from localstore.core.encoding import b64u, digest, unb64u
from localstore.core.errors import Forbidden, Invalid, NotFound, SignatureInvalid, TooLarge
from localstore.core.identity.keys import verify_registration
from localstore.core.lane.lane import Lane
from localstore.core.model import limits
from localstore.core.model.ref import RefCreate, StaleHead
from localstore.core.model.seal import (
    FinalizeRequest,
    PayloadMissing,
    PrepareExpired,
    PrepareRequest,
    SealBudgetExceeded,
)
from localstore.core.tree import TreeEntry
from relay.db import seal as seal_rows
from relay.db.schema import tables
from relay.domain.repository import ref as refs
from relay.domain.sealing import seal
from relay.memory.lanes import LaneKey
from tests.relay.domain.live.live_world import ORIGIN, World, world


@pytest.fixture
async def w(tmp_path: Path) -> AsyncIterator[World]:
    async with world(tmp_path) as made:
        yield made


async def test_a_seal_holds_the_frontier_and_verifies_offline(w: World) -> None:
    a = await w.device()
    gen, lane = await a.text("d/x", b"one")
    await a.send(a.edit("d/x", lane, gen, b"one two"), await a.blob("bin", b"\0\1"))
    prepared = await a.prepare()
    entries = {one.path: TreeEntry(one.kind, bytes.fromhex(one.digest), one.size) for one in prepared.changes}  # type: ignore[arg-type]
    assert tree.root_digest(entries, a.view.repo.tree_key).hex() == prepared.content_digest
    made = await a.finalize(prepared)
    assert await w.files(made.id) == {"d/x": b"one two", "bin": b"\0\1"}
    payload = seals.decode(unb64u(made.payload))
    assert (payload.parents, payload.content_digest) == ([], prepared.content_digest)
    verify_registration(ORIGIN, made.key.account, unb64u(made.key.public_key), unb64u(made.key.registration))
    assert payload.provenance.device_key_id == made.key.id == a.key.id
    await a.send(await a.create("new", b"n"), a.delete("bin", 3, 3))
    second = await a.seal(made.id)
    assert second.parents == [made.id]
    assert await w.files(second.id) == {"d/x": b"one two", "new": b"n"}


async def test_an_unchanged_frontier_makes_no_seal(w: World) -> None:
    a = await w.device()
    assert (await a.prepare()).unchanged
    gen, _ = await a.text("x", b"1")
    made = await a.seal()
    assert (await a.prepare(made.id)).unchanged
    await a.send(await a.create("y", b"2"), a.delete("y", gen + 1, gen + 1))
    again = await a.prepare(made.id)
    assert again.unchanged and again.content_digest == made.content_digest


async def test_prepare_over_a_moved_head_or_frontier_is_refused(w: World) -> None:
    a = await w.device()
    await a.text("x", b"1")
    made = await a.seal()
    with pytest.raises(StaleHead) as refused:
        await a.prepare()
    assert refused.value.extra["head"] == made.id
    body = PrepareRequest(message="m", device_key_id=a.key.id, expected_head=made.id, expected_frontier=0)
    with pytest.raises(StaleHead):
        await seal.prepare(a.view, "main", body)


@pytest.mark.parametrize(
    ("message", "error"),
    [(" \n", Invalid), ("a\0b", Invalid), ("é" * (limits.MESSAGE_BYTES // 2 + 1), TooLarge)],
)
async def test_a_message_says_something_and_fits(w: World, message: str, error: type[Exception]) -> None:
    a = await w.device()
    await a.text("x", b"1")
    with pytest.raises(error):
        await a.prepare(message=message)


async def test_of_two_devices_that_finalize_at_once_exactly_one_wins(w: World) -> None:
    a, b = await w.device(), await w.device()
    await a.text("x", b"1")
    first, second = await a.prepare(), await b.prepare()
    done = await asyncio.gather(a.finalize(first), b.finalize(second), return_exceptions=True)
    lost = [one for one in done if isinstance(one, StaleHead)]
    won = [one for one in done if not isinstance(one, BaseException)]
    assert len(lost) == len(won) == 1
    assert "your edits are live, not sealed" in lost[0].detail
    assert (await a.bootstrap()).sealed_head == won[0].id


async def rows_of(w: World, table: Table) -> int:
    async with w.node.db.read() as tx:
        return int(await tx.value(select(func.count()).select_from(table)))


async def test_answers_that_a_device_has_and_what_was_prepared_are_not_kept(w: World) -> None:
    a, b = await w.device(), await w.device()
    await a.text("x", b"1")
    await b.text("y", b"1")
    body = PrepareRequest(
        message="m", device_key_id=a.key.id, expected_head=None, replica=a.replica, settled=10**9
    )
    prepared = await seal.prepare(a.view, "main", body)
    assert await rows_of(w, tables["update_answer"]) == 1  # the other device's
    made = await a.finalize(prepared)
    assert await rows_of(w, tables["prepare"]) == 0
    assert (await a.finalize(prepared)).id == made.id
    (late,) = await a.send(a.delete("x", 1, 0))
    assert late.result == "ok", "a number above those that were used is not settled"


async def test_answers_of_anothers_replica_are_not_dropped(w: World) -> None:
    a, b = await w.device(), await w.device()
    await b.text("y", b"1")
    await a.text("x", b"1")
    body = PrepareRequest(
        message="m", device_key_id=a.key.id, expected_head=None, replica=b.replica, settled=9
    )
    with pytest.raises(Forbidden):
        await seal.prepare(a.view, "main", body)
    assert await rows_of(w, tables["update_answer"]) == 2


async def expire(w: World) -> None:
    async with w.node.db.write() as tx:
        await tx.run(update(tables["prepare"]).values(expires_at=bindparam("at")), at=1)


async def test_finalize_is_repeatable_even_when_its_time_is_over(w: World) -> None:
    a = await w.device()
    await a.text("x", b"1")
    prepared = await a.prepare()
    made = await a.finalize(prepared)
    await a.text("y", b"2")
    await a.seal(made.id)
    await expire(w)
    assert await a.finalize(prepared) == made
    stranger = await w.device(await w.account())
    with pytest.raises(NotFound):
        await stranger.finalize(prepared)


@pytest.mark.parametrize("state", ["there", "old", "gone"])
async def test_the_bytes_of_a_large_seal_are_looked_for_before_it_lands(
    w: World, monkeypatch: pytest.MonkeyPatch, state: str
) -> None:
    """What the collector may take until then is looked for under the lock, as that of small ones."""
    monkeypatch.setattr("relay.domain.sealing.payload.LARGE", 0)
    a = await w.device()
    await a.send(await a.create("x", b"1"), await a.blob("bin", b"\0\1"))
    prepared = await a.prepare()
    object_, scope = tables["object"], tables["repo_object"]
    async with w.node.db.write() as tx:
        if state == "old":
            await tx.run(update(object_).values(last_seen=1))
        if state == "gone":
            await tx.run(delete(scope).where(scope.c.digest == digest(b"\0\1")))
    if state == "gone":
        with pytest.raises(PayloadMissing):
            await a.finalize(prepared)
        return
    made = await a.finalize(prepared)
    assert await w.files(made.id) == {"x": b"1", "bin": b"\0\1"}
    if state == "old":  # safe from the collector since it landed
        async with w.node.db.read() as tx:
            seen = await tx.all(select(object_.c.last_seen).where(object_.c.digest == digest(b"\0\1")))
        assert all(one[0] > 1 for one in seen)


async def test_what_is_sealed_is_no_longer_prepared(w: World) -> None:
    a = await w.device()
    await a.text("x", b"1")
    await a.seal()
    async with w.node.db.read() as tx:
        assert await tx.all(select(tables["prepare"].c.id)) == []


async def test_an_expired_prepare_seals_nothing(w: World) -> None:
    a = await w.device()
    await a.text("x", b"1")
    prepared = await a.prepare()
    await expire(w)
    with pytest.raises(PrepareExpired):
        await a.finalize(prepared)
    assert (await a.bootstrap()).sealed_head is None


async def test_only_the_device_that_prepared_can_sign(w: World) -> None:
    a, b = await w.device(), await w.device()
    other = await w.device(await w.account())
    await a.text("x", b"1")
    prepared = await a.prepare()
    with pytest.raises(Forbidden):
        await b.finalize(prepared)
    with pytest.raises(NotFound):
        await other.finalize(prepared)
    for bad in (bytes(64), b.key.sign(unb64u(prepared.bytes)), a.key.sign(b"other bytes")):
        body = FinalizeRequest(prepare_id=prepared.prepare_id, device_key_id=a.key.id, signature=b64u(bad))
        with pytest.raises(SignatureInvalid):
            await seal.finalize(a.view, "main", body)
    with pytest.raises(NotFound):
        await a.finalize(msgspec.structs.replace(prepared, prepare_id="0" * 64))
    assert (await a.finalize(prepared)).id == prepared.digest


async def test_updates_after_prepare_belong_to_the_next_seal(w: World) -> None:
    a, b = await w.device(), await w.device(await w.account())
    gen, lane = await a.text("x", b"1")
    prepared = await a.prepare()
    theirs = Lane.genesis(b.branch_id, gen, 0, b"1")
    await b.one(b.edit("x", theirs, gen, b"12"))
    first = await a.finalize(prepared)
    assert await w.files(first.id) == {"x": b"1"}
    assert (await a.one(a.edit("x", lane, gen, b"01"))).result == "ok"
    following = await a.prepare(first.id)
    assert following.live_by == {"x": [b.view.me.account_id[:8]]}
    assert await w.files((await a.finalize(following)).id) == {"x": b"012"}


@pytest.mark.parametrize("in_memory", [False, True])
async def test_a_lane_may_leave_memory_at_any_moment(
    w: World, monkeypatch: pytest.MonkeyPatch, in_memory: bool
) -> None:
    """A lane that was there when its sources were asked for may be borrowed by another one since."""
    a = await w.device()
    gen, lane = await a.text("x", b"1")
    assert (await a.one(a.edit("x", lane, gen, b"12"))).result == "ok"
    if not in_memory:
        w.node.lanes.forget([LaneKey(a.branch_id, gen, 0)])
    monkeypatch.setattr(w.node.lanes, "borrow", lambda key, stand: None)
    made = await a.finalize(await a.prepare())
    assert await w.files(made.id) == {"x": b"12"}
    state, _ = await a.fetch("x", gen, epoch=0)
    assert (state.epoch, list(state.finals)) == (1, ["0"])


async def test_binaries_over_the_budget_of_a_tree_are_refused(w: World) -> None:
    a = await w.device()
    data = bytes(limits.BLOB_FILE)
    blob = await w.put(data)
    many = limits.BLOB_TREE // limits.BLOB_FILE + 1
    await a.send(*[a.make("set_blob", f"b{n}", blake3=blob, size=len(data)) for n in range(many)])
    with pytest.raises(SealBudgetExceeded):
        await a.prepare()
    await a.one(a.delete("b0", 1, 1))
    assert len((await a.prepare()).changes) == many - 1


async def test_a_tree_of_too_many_files_is_refused_until_some_go(
    w: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "TREE_ENTRIES", 3)
    a = await w.device()
    created = [await a.create(f"x{n}", b"1") for n in range(4)]
    await a.send(*created)
    with pytest.raises(SealBudgetExceeded, match="at most 3 files"):
        await a.prepare()
    await a.one(a.delete("x0", 1, 1))
    assert len((await a.prepare()).changes) == 3


async def test_files_are_counted_only_when_they_may_be_too_many(
    w: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    counted: list[bool] = []
    monkeypatch.setattr(seal, "require_budget", lambda *_: counted.append(True))
    a = await w.device()
    await a.send(await a.create("x", b"1"), await a.create("y", b"22"))
    head = (await a.seal()).id
    assert counted == []
    monkeypatch.setattr(limits, "BLOB_TREE", 5)
    await a.send(await a.create("z", b"333"))
    await a.seal(head)
    assert counted == [True]


async def test_a_branch_made_from_a_seal_has_its_files_as_sealed_lanes(w: World) -> None:
    a = await w.device()
    await a.send(await a.create("d/x", b"1"), await a.create("y", b"2"))
    made = await a.seal()
    await refs.create(a.view, RefCreate(type="branch", name="side", head=made.id))
    b = await w.device()
    b.branch, b.replica = "side", 0
    start = await b.bootstrap()
    gens = {row.path: row.gen for row in start.rows}
    assert gens.keys() == {"d/x", "y"} and len(set(gens.values())) == 2
    assert (start.seq, start.sealed_head) == (1, made.id)
    assert (await b.prepare(made.id)).unchanged
    assert (await b.one(await b.create("d", b"clash"))).result == "stale"
    assert (await b.one(b.delete("y", gens["y"], 1))).result == "ok"
    assert await w.files((await b.seal(made.id)).id) == {"d/x": b"1"}


async def test_seals_are_found_by_a_short_id(w: World) -> None:
    a = await w.device()
    ids: list[str] = []
    for n in range(3):
        await a.one(await a.create(f"f{n}", b""))
        ids.append((await a.seal(ids[-1] if ids else None)).id)
    async with w.node.db.read() as tx:
        assert await seal_rows.resolve(tx, w.repo_id, ids[1][:12]) == ids[1]
        for bad in ("", ids[1][:7], ids[1].upper(), "%", "f" * 65):
            assert await seal_rows.resolve(tx, w.repo_id, bad) is None
