"""The object store: round trips, scopes, damage, roll-over."""

from __future__ import annotations

import asyncio
import contextlib
import os
import tempfile
import tracemalloc
from collections.abc import AsyncIterator
from pathlib import Path

import msgspec
import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st

from localstore.core.encoding import digest
from localstore.core.errors import NotFound, Unavailable
from localstore.core.model.limits import MIB
from localstore.core.storage.frame import ZSTD
from localstore.core.storage.pack import Frame, FrameRow, ObjectRow, PackReader, write_packs
from relay.http.buffers import Buffers, Lease
from relay.objects.export import REFRAMED, export
from relay.objects.store import ObjectStore
from tests import buckets
from tests.depth import rounds
from tests.relay.node_fixture import database, make_account, make_repo


@contextlib.asynccontextmanager
async def opened(
    folder: Path, s3: bool = buckets.EVERYWHERE, **options: int | bool
) -> AsyncIterator[tuple[ObjectStore, str, str]]:
    async with database(folder) as db:
        owner = await make_account(db, "ann")
        packs = await buckets.packs_of(folder, s3)
        store = ObjectStore(folder, db, packs, **options)  # type: ignore[arg-type]
        try:
            yield store, await make_repo(db, owner), await make_repo(db, owner)
        finally:
            await store.close()


def frames_of(datas: list[bytes], text: bool) -> list[Frame]:
    return [frame for pack in write_packs((digest(d), d, text) for d in datas) for frame in pack.frames]


def lease() -> Lease:
    return Lease(Buffers(), "")


def unpack(pack: bytes) -> dict[bytes, bytes]:
    reader = PackReader()
    found = {name: bytes(data) for frame in reader.feed(pack) for name, data in frame.objects()}
    reader.close()
    return found


objects = st.lists(
    st.one_of(st.binary(max_size=300), st.integers(0, 90_000).map(lambda n: b"line of text\n" * n)),
    max_size=8,
)


@pytest.mark.parametrize("s3", [False, True])
@given(
    batches=st.lists(st.tuples(objects, st.booleans()), max_size=4),
    random=st.randoms(use_true_random=False),
)
@settings(max_examples=rounds(5, 12), deadline=None)
def test_what_goes_in_comes_out_and_only_to_those_who_put_it(s3, batches, random):
    async def scenario() -> None:
        with tempfile.TemporaryDirectory() as name:
            async with opened(Path(name), s3, pack_file_bytes=50_000, cache_bytes=400_000, verify=True) as (
                store,
                mine,
                other,
            ):
                known: dict[str, dict[bytes, bytes]] = {mine: {}, other: {}}
                for datas, text in batches:
                    repo = random.choice([mine, other])
                    placed = await store.append(frames_of(datas, text))
                    async with store._db.write() as tx:
                        await store.index(tx, placed, repo)
                    known[repo] |= {digest(data): data for data in datas}
                every = {**known[mine], **known[other]}
                for repo, held in known.items():
                    for kept in (False, True):  # the second time whole frames, some from memory
                        some = random.sample(sorted(held), len(held) // 2)
                        found = await store.read_many(some, repo, cache=kept)
                        assert found == {one: held[one] for one in some}
                    assert await store.read_many(list(held), repo) == held
                    async with store._db.read() as tx:
                        assert await store.find_missing(tx, repo, list(every)) == set(every) - set(held)
                    for name_, _ in set(every.items()) - set(held.items()):
                        with pytest.raises(NotFound):
                            await store.read(name_, repo)
                    wanted = random.sample(sorted(held), len(held) // 2)
                    located = await store.locate(wanted, repo)
                    made = await export(store, [located[one] for one in wanted], lease())
                    sent = b"".join([part async for part in made.stream])
                    assert len(sent) == made.length
                    assert made.left == 0
                    assert unpack(sent) == {one: held[one] for one in wanted}

    asyncio.run(scenario())


@pytest.mark.parametrize("s3", [False, True])
async def test_nothing_is_reachable_from_a_transaction_that_failed(tmp_path, s3):
    async with opened(tmp_path, s3) as (store, mine, _):
        placed = await store.append(frames_of([b"lost"], True))
        with pytest.raises(ZeroDivisionError):
            async with store._db.write() as tx:
                await store.index(tx, placed, mine)
                raise ZeroDivisionError
        with pytest.raises(NotFound):
            await store.read(digest(b"lost"))


async def test_put_shares_bytes_and_scopes_them(tmp_path):
    async with opened(tmp_path, False) as (store, mine, other):
        name = await store.put(mine, b"shared")
        size = sum(path.stat().st_size for path in store.packs.folder.iterdir())
        with pytest.raises(NotFound):
            await store.read(name, other)
        assert await store.put(other, b"shared") == name
        assert await store.read(name, other) == b"shared"
        written = sum(path.stat().st_size for path in store.packs.folder.iterdir())
        assert written == 2 * size, "the work of a put does not tell what others hold"
        assert await store.put(other, b"shared") == name
        assert sum(path.stat().st_size for path in store.packs.folder.iterdir()) == written


@pytest.mark.parametrize("s3", [False, True])
async def test_directories_are_stored_under_names_of_their_own(tmp_path, s3):
    async with opened(tmp_path, s3, verify=True) as (store, mine, _):
        name = bytes(range(32))
        await store.put_many(mine, {name: b"entries"}, directories=True)
        assert await store.read(name, mine) == b"entries"


@pytest.mark.parametrize("s3", [False, True])
async def test_an_object_in_the_callers_transaction_is_read_there(tmp_path, s3):
    async with opened(tmp_path, s3) as (store, mine, _), store._db.write() as tx:
        name = await store.put(mine, b"now", tx)
        assert await store.read(name, mine, tx) == b"now"


@pytest.mark.parametrize("s3", [False, True])
@pytest.mark.parametrize("verify", [False, True])
async def test_many_are_shown_in_the_order_asked_for(tmp_path, s3, verify):
    async with opened(tmp_path, s3, verify=verify) as (store, mine, _):
        datas = [os.urandom(40_000) for _ in range(70)] + [os.urandom(3 * MIB), b"text " * 20_000]
        for part in (datas[:30], datas[30:]):
            placed = await store.append(frames_of(part, text=False))
            async with store._db.write() as tx:
                await store.index(tx, placed, mine)
        wanted = [*datas, datas[3], *reversed(datas)]
        found = await store.locate([digest(one) for one in datas], mine)
        shown = bytearray()
        await store.show([found[digest(one)] for one in wanted], shown.extend)
        assert shown == b"".join(wanted)


async def test_what_moved_is_found_again_before_it_is_shown(tmp_path):
    async with opened(tmp_path, False) as (store, mine, _):
        datas = [os.urandom(40_000) for _ in range(3)]
        placed = await store.append(frames_of(datas, text=False))
        async with store._db.write() as tx:
            await store.index(tx, placed, mine)
        found = await store.locate([digest(one) for one in datas], mine)
        gone = [msgspec.structs.replace(found[digest(one)], pack="gone") for one in datas]
        shown = bytearray()
        await store.show(gone, shown.extend)
        assert shown == b"".join(datas)


async def test_a_pack_that_ends_early_is_an_error_and_never_fewer_bytes(tmp_path):
    async with opened(tmp_path, False) as (store, mine, _):
        name = await store.put(mine, os.urandom(40_000))
        (path,) = store.packs.folder.iterdir()
        path.write_bytes(path.read_bytes()[:-1])
        found = await store.locate([name], mine)
        with pytest.raises(Unavailable):
            await store.show([found[name]], bytearray().extend)


async def test_a_frame_cut_short_is_an_error_also_where_its_beginning_is_enough(tmp_path):
    async with opened(tmp_path, False) as (store, mine, _):
        texts = [b"%d " % n * 20_000 for n in range(9)]
        (placed,) = await store.append(frames_of(texts, text=True))
        async with store._db.write() as tx:
            await store.index(tx, [placed], mine)
        first = digest(texts[0])
        assert await store.read_many([first], mine, cache=False) == {first: texts[0]}
        (path,) = store.packs.folder.iterdir()
        for left, missing in ((path.stat().st_size - 1, 1), (0, placed.row.stored_len)):
            os.truncate(path, left)
            with pytest.raises(Unavailable, match=f"ends {missing} bytes before a frame"):
                await store.read_many([first], mine, cache=False)


async def test_damage_on_disk_is_an_error_not_other_bytes(tmp_path):
    async with opened(tmp_path, False, verify=True) as (store, mine, _):
        name = await store.put(mine, os.urandom(1000))
        (path,) = store.packs.folder.iterdir()
        with path.open("r+b") as file:
            file.seek(500)
            file.write(b"x" * 100)
        with pytest.raises(Unavailable):
            await store.read(name, mine)
        path.write_bytes(b"")
        with pytest.raises(Unavailable):
            await store.read(name, mine)


async def test_files_roll_over_and_names_are_never_reused(tmp_path):
    async with opened(tmp_path, False, pack_file_bytes=1000) as (store, mine, _):
        names = [await store.put(mine, os.urandom(900)) for _ in range(6)]
        assert len(list(store.packs.folder.iterdir())) == 3
        again = ObjectStore(tmp_path, store._db)
        names.append(await again.put(mine, b"after a restart"))
        await again.close()
        assert len(list(store.packs.folder.iterdir())) == 4
        assert len(await store.read_many(names, mine)) == 7


async def test_many_writers_share_syncs_and_lose_nothing(tmp_path, monkeypatch):
    syncs = 0
    real = os.fdatasync

    def counted(fd: int) -> None:
        nonlocal syncs
        syncs += 1
        real(fd)

    monkeypatch.setattr(os, "fdatasync", counted)
    async with opened(tmp_path, False) as (store, _, _):
        placed = await asyncio.gather(*(store.append(frames_of([b"%d" % n], True)) for n in range(200)))
        assert syncs <= 3
        assert len({one.place for (one,) in placed}) == 200


async def test_a_failing_disk_is_reported_and_its_file_abandoned(tmp_path, monkeypatch):
    async with opened(tmp_path, False) as (store, mine, _):
        kept = await store.put(mine, b"before")
        unsynced = await store.append(frames_of([b"in between"], True), sync=False)

        def broken(fd: int) -> None:
            raise OSError(5, "Input/output error")

        with monkeypatch.context() as patch:
            patch.setattr(os, "fdatasync", broken)
            with pytest.raises(Unavailable):
                await store.append(frames_of([b"during"], True))
        with pytest.raises(Unavailable):
            await store.sync(unsynced)
        after = await store.put(mine, b"after")
        assert await store.read_many([kept, after], mine) == {kept: b"before", after: b"after"}


def hostile(count: int, raw_len: int) -> tuple[list[Frame], list[bytes]]:
    """Frames of a filler that compresses to nothing and a few bytes behind it; and the digests of these."""
    frames, tiny = [], []
    for _ in range(count):
        small, filler = os.urandom(9), os.urandom(9) + bytes(raw_len - 18)
        stored = zstandard.ZstdCompressor(level=1).compress(filler + small)
        rows = [ObjectRow(digest(filler), len(filler)), ObjectRow(digest(small), len(small))]
        frames.append(Frame(FrameRow(ZSTD, raw_len, len(stored), rows), stored))
        tiny.append(digest(small))
    return frames, tiny


@pytest.mark.parametrize("raw_len", [MIB, 12 * MIB], ids=["kept in the cache", "too large for it"])
async def test_tiny_objects_in_large_frames_are_unpacked_a_portion_at_a_time(tmp_path, raw_len):
    count = 240 * MIB // raw_len
    async with opened(tmp_path, cache_bytes=16 * MIB) as (store, repo, _):
        frames, tiny = hostile(count, raw_len)
        placed = await store.append(frames)
        async with store._db.write() as tx:
            await store.index(tx, placed, repo)
        frames.clear()
        located = await store.locate(tiny, repo)
        tracemalloc.start()
        try:
            packs = await asyncio.gather(*(export(store, [*located.values()], lease()) for _ in range(4)))
            read = await store.read_many(tiny, repo)
            _, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
        assert set(read) == set(tiny)
        assert [pack.left for pack in packs] == [0] * 4
        assert peak < 112 * MIB


async def test_an_answer_frames_only_so_much_anew(tmp_path):
    """The rest is left for the next one, as what does not fit."""
    datas = [os.urandom(8) * 32_000 for _ in range(100)]  # 256 kB each, two in a frame
    async with opened(tmp_path) as (store, repo, _):
        placed = await store.append(frames_of(datas, text=True))
        async with store._db.write() as tx:
            await store.index(tx, placed, repo)
        asked = [digest(data) for data in datas[::2]] + [digest(data) for data in datas[1:40:2]]
        left, answers, found = list(dict.fromkeys(asked))[::2], 0, dict[bytes, bytes]()
        wanted = set(left)
        while left:
            located = await store.locate(left, repo)
            made = await export(store, [located[one] for one in left], lease())
            got = unpack(b"".join([part async for part in made.stream]))
            assert len(got) == len(left) - made.left
            assert sum(map(len, got.values())) <= REFRAMED + 512_000
            found |= got
            left = [one for one in left if one not in got]
            answers += 1
        assert found == {digest(data): data for data in datas if digest(data) in wanted}
