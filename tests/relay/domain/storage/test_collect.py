"""The collector: what is referred to stays whatever clients do meanwhile; the rest goes, bytes included."""

from __future__ import annotations

import asyncio
import contextlib
import os
import time
from collections.abc import Iterable
from pathlib import Path

import pytest
from sqlalchemy import func, select

from localstore.core.encoding import digest
from localstore.core.errors import NotFound, Unavailable
from relay.base.clock import now_ms
from relay.db import ref as refs
from relay.db.schema import tables
from relay.domain.storage import roots
from relay.domain.storage.collect import collect
from relay.domain.upkeep import verification
from relay.domain.upkeep.verification import usage
from relay.objects import store as objects
from tests import buckets
from tests.relay.domain.live.live_world import World, opened, world

NOW = -60_000  # grace: everything that was seen until a minute from now is old enough


def age(folder: Path, quiet: float = 0, but: str = "") -> None:
    """As if nobody had written for days to the packs that have been quiet for some seconds. Objects of a
    bucket keep their time; `gc` is told another."""
    if buckets.EVERYWHERE:
        return
    for path in (folder / "objects").iterdir():
        if path.stem != but and path.stat().st_mtime < time.time() - quiet:
            os.utime(path, (1, 1))


async def count(made: World, table: object) -> int:
    async with made.node.db.read() as tx:
        return int(await tx.value(select(func.count()).select_from(table)))  # type: ignore[arg-type]


async def stored(made: World) -> int:
    """Bytes of all packs."""
    return sum([info.size async for info in made.node.objects.packs.list_packs()])


async def gc(made: World, grace: int = NOW, dry_run: bool = False, quiet: int = NOW) -> tuple[int, int]:
    """How many objects and packs went. Packs in files are old when `age` says so."""
    lines: list[str] = []
    quiet = quiet if buckets.EVERYWHERE else 60_000
    found, freed = await collect(
        made.node.db, made.node.objects, lines.append, dry_run=dry_run, grace=grace, quiet=quiet
    )
    assert lines
    return found.objects, freed.packs


async def sound(made: World) -> None:
    assert [one async for one in verification.audit(made.node.db, made.node.objects)] == []


async def test_only_what_nobody_refers_to_goes(tmp_path):
    async with world(tmp_path) as made:
        device = await made.device()
        await device.send(await device.create("a.txt", b"first"), await device.blob("b.bin", b"\0" * 3000))
        head = (await device.seal()).id
        await device.send(device.delete("b.bin", 2, 2), await device.create("c.txt", b"live only"))
        dead = await made.node.objects.put(made.repo_id, os.urandom(5000))
        scopes = await count(made, tables["repo_object"])
        assert await gc(made, dry_run=True) == (1, 0)
        assert await count(made, tables["repo_object"]) == scopes
        age(tmp_path)
        assert (await gc(made))[0] == 1
        with pytest.raises(NotFound):
            await made.node.objects.read(dead)
        async with made.node.db.read() as tx:
            assert await made.node.objects.find_missing(tx, made.repo_id, [dead]) == {dead}
        for data in (b"first", b"\0" * 3000, b"live only"):
            assert await made.node.objects.read(digest(data), made.repo_id) == data
        await sound(made)
        assert (await device.seal(head)).id


async def test_what_was_seen_within_the_day_stays(tmp_path):
    async with world(tmp_path) as made:
        name = await made.node.objects.put(made.repo_id, b"uploaded, not named yet")
        assert await gc(made, grace=objects.STALE_TOUCH) == (0, 0)
        assert await made.node.objects.read(name) == b"uploaded, not named yet"


async def test_open_prepares_and_older_epochs_are_roots(tmp_path):
    async with world(tmp_path) as made:
        device = await made.device()
        await device.send(await device.create("a.txt", b"one\n"))
        head = (await device.seal()).id
        _, lane = await device.fetch("a.txt", 1)
        await device.one(device.edit("a.txt", lane, 1, b"one\ntwo\n"))
        prepared = await device.prepare(head)
        age(tmp_path)
        await gc(made)
        sealed = await device.finalize(prepared)
        await gc(made)
        await sound(made)
        state, _ = await device.fetch("a.txt", 1, epoch=0)
        assert list(state.finals) == ["0"]
        assert sealed.parents == [head]


async def test_a_checkpoint_keeps_nothing(tmp_path):
    async with world(tmp_path) as made:
        device = await made.device()
        await device.send(await device.create("sealed.txt", b"sealed"))
        head = (await device.seal()).id
        (answer,) = await device.send(await device.blob("x.bin", b"\0 in between"), turn="first")
        later = await device.blob("x.bin", b"\0 at last", answer.gen, answer.seq)
        assert [one.result for one in await device.send(later, turn="second")] == ["ok"]
        assert await count(made, tables["checkpoint"]) == 1
        age(tmp_path)
        await gc(made)
        assert await made.node.objects.read(digest(b"\0 at last")) == b"\0 at last"
        assert await made.node.objects.read(digest(b"sealed")) == b"sealed"
        with pytest.raises(NotFound):
            await made.node.objects.read(digest(b"\0 in between"))
        await sound(made)
        assert (await device.seal(head)).id


async def test_files_deleted_before_any_seal_keep_nothing(tmp_path):
    async with world(tmp_path) as made:
        device, other = await made.device(), await made.device()
        await device.send(await device.create("sealed.txt", b"sealed"))
        gen, lane = await device.text("note.txt", b"a note of one turn\n")
        (blob,) = await device.send(await device.blob("x.bin", b"\0 of one turn"), turn="first")
        late = other.edit("note.txt", lane, gen, b"a late word\n")
        gone = [device.delete("note.txt", gen, blob.seq), device.delete("x.bin", blob.gen, blob.seq)]
        assert [one.result for one in await device.send(*gone, turn="second")] == ["ok", "ok"]
        age(tmp_path)
        assert (await gc(made))[0] == 2
        for data in (b"a note of one turn\n", b"\0 of one turn"):
            with pytest.raises(NotFound):
                await made.node.objects.read(digest(data))
        assert (await other.one(late)).result == "stale"
        head = (await device.seal()).id
        await device.text("note.txt", b"another note\n")
        sealed = await device.seal(head)
        assert await made.files(sealed.id) == {"sealed.txt": b"sealed", "note.txt": b"another note\n"}
        await sound(made)


async def test_a_deleted_branch_keeps_what_is_sealed(tmp_path):
    async with world(tmp_path) as made:
        device = await made.device()
        await device.send(await device.create("sealed.txt", b"sealed"))
        head = (await device.seal()).id
        await device.send(await device.create("open.txt", b"never sealed"))
        async with made.node.db.write() as tx:
            await tx.run(refs.DELETE, ref_id=made.branch_id, now=now_ms())
        age(tmp_path)
        assert (await gc(made))[0] == 1
        assert await made.files(head) == {"sealed.txt": b"sealed"}
        with pytest.raises(NotFound):
            await made.node.objects.read(digest(b"never sealed"))
        await sound(made)


async def test_mostly_dead_packs_are_written_anew_and_deleted(tmp_path):
    async with world(tmp_path) as made:
        device = await made.device()
        kept = b"keep me\n" * 50
        for data in (os.urandom(200_000), os.urandom(100_000)):
            await made.node.objects.put(made.repo_id, data)
        shared = {digest(one): one for one in [b"%d" % n * 200 for n in range(50)] + [kept]}
        await made.node.objects.put_many(made.repo_id, shared)
        await device.send(await device.create("a.txt", kept))
        before = await stored(made)
    async with opened(tmp_path) as node:
        made.node = node
        age(tmp_path)
        objects_gone, packs_gone = await gc(made)
        assert objects_gone == 52
        if node.db.shared:  # another process may still be sending them to somebody
            assert packs_gone == 0
            packs_gone = (await gc(made))[1]
        assert packs_gone >= 1
        assert await stored(made) < before / 100
        assert await node.objects.read(digest(kept), made.repo_id) == kept
        await sound(made)
    async with opened(tmp_path) as node:
        made.node = node
        age(tmp_path)
        assert await gc(made) == (0, 0)


async def test_a_missing_tree_stops_the_collector(tmp_path):
    async with world(tmp_path) as made:
        device = await made.device()
        await device.send(await device.create("a.txt", b"first"))
        await device.seal()
        async with made.node.db.write() as tx:
            await tx.run(tables["object"].delete().where(tables["object"].c.directory))
        with pytest.raises(Unavailable):
            await gc(made)
        assert await made.node.objects.read(digest(b"first")) == b"first"
        found = [one async for one in verification.audit(made.node.db, made.node.objects)]
        assert any("missing" in one for one in found)


async def test_nothing_is_lost_while_clients_push(tmp_path, monkeypatch):
    """The collector runs without a pause and with next to no grace; devices create, edit, delete and seal.

    A grace must be longer than a transaction that has touched something and reads objects before it commits.
    """
    monkeypatch.setattr(objects, "STALE_TOUCH", 0)
    async with world(tmp_path) as made:
        stop = asyncio.Event()
        grace = 1500 if made.node.db.shared or buckets.EVERYWHERE else 30
        made.node.objects.packs._roll_bytes = 5000

        async def collector() -> int:
            went = 0
            while not stop.is_set():
                writing = getattr(made.node.objects.packs, "_open", None)
                age(tmp_path, quiet=2, but=writing.name if writing else "")
                went += (await gc(made, grace=grace, quiet=3000))[0]
                await asyncio.sleep(0)
            return went

        async def work(branch: int) -> None:
            device = await made.device()
            for n in range(1, 81):
                path, text = f"d{branch}/f{n}.txt", b"%d %d\n" % (branch, n) * 9
                with contextlib.suppress(Unavailable):  # the bytes went while the relay looked at them
                    await made.node.objects.put(made.repo_id, b"named by nobody: " + text)
                    await made.put(text)
                    await asyncio.sleep(n % 8 / 100)  # around the grace time
                    update = device.make("create_text", path, blake3=digest(text).hex(), size=len(text))
                    answer = await device.one(update)
                    if answer.result == "ok" and n % 3 == 0:
                        row = next(one for one in (await device.bootstrap()).rows if one.path == path)
                        await device.one(device.delete(path, row.gen, row.ver))

        async def sealer() -> None:
            device = await made.device()
            for _ in range(8):
                await device.bootstrap()
                prepared = await device.prepare(device.head)
                if not prepared.unchanged:
                    await device.finalize(prepared)
                await asyncio.sleep(0.3)

        running = asyncio.create_task(collector())
        try:
            await asyncio.gather(work(1), work(2), sealer())
        finally:
            stop.set()
            went = await running
        assert went > 0
        assert await count(made, tables["seal"]) > 3
        await usage.repair(made.node.db)  # with next to no grace an object may go while it is counted
        await sound(made)


async def test_the_collector_reads_a_portion_of_large_trees_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A seal of one file in a flat directory of many writes all of the directory again."""
    async with world(tmp_path) as w:
        a = await w.device()
        names = [f"file-{n}" for n in range(400)]
        await a.send(*[await a.blob(name, b"\0") for name in names])
        head = (await a.seal()).id
        for row in (await a.bootstrap()).rows[:8]:
            await a.one(await a.blob(row.path, b"\0new", row.gen, row.gen))
            head = (await a.seal(head)).id
        size = 0

        def children(raws: Iterable[bytes]) -> tuple[list[bytes], list[bytes]]:
            nonlocal size
            size = max(size, sum(map(len, raws)))
            return found(raws)

        found = roots._find_children
        monkeypatch.setattr(roots, "_find_children", children)
        monkeypatch.setattr(roots, "DIRECTORY_BYTES", 50_000)
        await gc(w)
        assert 20_000 < size < 100_000
        await sound(w)
