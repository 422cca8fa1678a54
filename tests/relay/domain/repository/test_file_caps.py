"""Caps of byte files where they enter the live branch: an app's manifest, the budget, files of before."""

from __future__ import annotations

import threading
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from sqlalchemy import bindparam, update

from localstore.core.lane.lane import Lane
from localstore.core.lane.update import LiveUpdate
from localstore.core.model import limits
from localstore.core.model.seal import PrepareSealsRequest, SealBudgetExceeded, SealChange, TreeDelta
from relay.db.schema import tables
from relay.domain.live import rules
from relay.domain.sealing import trees
from tests.relay.domain.live.live_world import Device, World, world

BIG = b"\0" * (limits.BLOB_FILE + 1)


@pytest.fixture
async def w(tmp_path: Path) -> AsyncIterator[World]:
    async with world(tmp_path) as made:
        yield made


def raising(mib: int) -> bytes:
    return b"kind: app\nlimits: {max_file_mib: %d}\n" % mib


async def manifest(device: Device, mib: int) -> tuple[int, Lane]:
    """A new `.svc.yaml` and its lane."""
    answer = await device.one(await device.create(".svc.yaml", raising(mib)))
    return answer.gen, Lane.genesis(device.branch_id, answer.gen, 0, raising(mib))


def big(device: Device, path: str, digest: str, gen: int = 0, base: int = 0) -> LiveUpdate:
    return device.make("set_blob", path, gen, base, blake3=digest, size=len(BIG))


async def test_a_manifest_on_the_frontier_raises_the_cap_of_an_app(w: World) -> None:
    a = await w.device()
    digest = await w.put_large(BIG)
    first = await a.one(big(a, "big.bin", digest))
    assert (first.code, "limits.max_file_mib" in first.detail) == ("too_large", True)
    gen, lane = await manifest(a, 16)
    assert (await a.one(big(a, "big.bin", digest))).code == "too_large"
    raised = a.edit(".svc.yaml", lane, gen, raising(20))
    answers = await a.send(raised, big(a, "big.bin", digest))
    assert [answer.result for answer in answers] == ["ok", "ok"]
    assert (await a.one(big(a, "big2.bin", digest))).result == "ok"
    kinds = {row.path: row.kind for row in (await a.bootstrap()).rows}
    assert kinds == {".svc.yaml": "text", "big.bin": "chunked", "big2.bin": "chunked"}


async def test_a_lowered_cap_keeps_what_is_there(w: World) -> None:
    a = await w.device()
    digest = await w.put_large(BIG)
    gen, lane = await manifest(a, 20)
    await a.one(big(a, "big.bin", digest))
    head = (await a.seal()).id
    lowered = a.edit(".svc.yaml", lane, gen, raising(1))
    same, other = (big(a, path, digest) for path in ("big.bin", "new.bin"))
    _, kept, refused = await a.send(lowered, same, other)
    assert (kept.result, refused.code) == ("ok", "too_large")
    prepared = await a.prepare(head)
    assert [change.path for change in prepared.changes] == [".svc.yaml"]


async def test_bytes_sent_as_one_object_are_asked_for_as_chunks(w: World) -> None:
    a = await w.device()
    await manifest(a, 20)
    digest = await w.put(BIG)
    assert (await a.one(big(a, "big.bin", digest))).code == "payload_missing"
    assert await w.put_large(BIG) == digest
    assert (await a.one(big(a, "big.bin", digest))).result == "ok"


async def test_a_file_stored_as_one_object_before_stays_as_it_is(
    w: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    a = await w.device()
    await manifest(a, 20)
    digest = await w.put(BIG)
    with monkeypatch.context() as before:
        before.setattr(rules, "kind_of_bytes", lambda size, kind: "blob")
        old = await a.one(big(a, "old.bin", digest))
    assert old.result == "ok"
    head = (await a.seal()).id
    await a.one(await a.create("more.txt", b"more\n"))
    later = await a.prepare(head)
    assert [change.path for change in later.changes] == ["more.txt"]
    assert {row.path: row.kind for row in (await a.bootstrap()).rows}["old.bin"] == "blob"
    await w.put_large(BIG)
    assert (await a.one(big(a, "old.bin", digest, gen=old.gen, base=old.seq))).result == "ok"
    assert {row.path: row.kind for row in (await a.bootstrap()).rows}["old.bin"] == "chunked"


@pytest.mark.parametrize("kind", ["app", "lib", "model"])
async def test_large_files_count_in_the_budget(tmp_path: Path, kind: str) -> None:
    async with world(tmp_path, "model") as w:
        a = await w.device()
        digest = await w.put_large(BIG)
        await a.send(*[big(a, f"{n:02}.bin", digest) for n in range(limits.BLOB_TREE // len(BIG) + 1)])
        async with w.node.db.write() as tx:
            await tx.run(update(tables["repo"]).values(kind=bindparam("to")), to=kind)
        b = await w.device()
        if kind == "model":
            assert not (await b.prepare()).unchanged
            return
        with pytest.raises(SealBudgetExceeded):
            await b.prepare()
        await b.one(b.delete("00.bin", 1, 1))
        assert not (await b.prepare()).unchanged


async def test_no_manifest_is_read_on_the_event_loop(w: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """The longest one takes most of a second, and a request may bring a thousand."""
    where: list[int] = []

    def cap(text: bytes | None, kind: str) -> int:
        where.append(threading.get_ident())
        return rules.file_cap(text, kind)

    monkeypatch.setattr(trees, "file_cap", cap)
    a = await w.device()
    text = raising(20)
    changes = [
        SealChange(path=".svc.yaml", kind="text", digest=await w.put(text), size=len(text)),
        SealChange(path="big.bin", kind="chunked", digest=await w.put_large(BIG), size=len(BIG)),
    ]
    seals = [TreeDelta(message="Large", changes=changes)]
    body = PrepareSealsRequest(branch="main", device_key_id=a.key.id, expected_head=None, seals=seals)
    assert len((await trees.prepare(a.view, body)).seals) == 1
    assert where
    assert threading.get_ident() not in where
