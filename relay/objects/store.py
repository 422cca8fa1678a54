"""The object store. It has bytes by digest in pack files, an index in the database, and for each repository
the set of objects that it reaches.

    placed = await store.append(frames)                    # durable, but nobody can reach it yet
    async with view.write() as tx:
        await store.index(tx, placed, repo_id)             # reachable when the transaction commits

An object is stored once for all repositories, but a repository reaches it only through a `repo_object` row of
its own. A method with a `tx` sees that transaction's uncommitted rows. Without a `tx` it uses another read
connection, so a caller that holds a transaction must pass it.
"""

from __future__ import annotations

import asyncio
import contextlib
import sys
from collections import Counter
from collections.abc import AsyncGenerator, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from localstore.core.encoding import digest as blake3_digest
from localstore.core.errors import NotFound, Unavailable
from localstore.core.model.limits import MIB
from localstore.core.storage.pack import Frame, FrameRow, PackWriter
from relay.base.batches import split_batches
from relay.base.clock import now_ms
from relay.base.threads import run_in_pool
from relay.capacity import quota as quotas
from relay.capacity.quota import Quota
from relay.db.engine.database import Database, Tx
from relay.db.storage import object as rows
from relay.db.storage import usage
from relay.db.storage.object import Located
from relay.objects.backend import PackGone, PackPosition, Packs, inline, use_each
from relay.objects.frames import FrameCache, FrameKey, bytes_to_unpack, cut_objects, unpack_frames
from relay.objects.packs import FOLDER, INLINE_BYTES, ROLL_BYTES, PackFiles
from relay.objects.ranges import find_runs, group_located, is_plain
from relay.objects.room import Room

CACHE_BYTES = 64 * MIB
ROOM_BYTES = 64 * MIB  # of frames being unpacked, in the whole process
PORTION = 8 * MIB  # of frames that are unpacked in one go, unless one alone is larger
FEW = 16  # objects that are located without a thread
STALE_TOUCH = 3600_000  # milliseconds for which a touch counts as recent: most touches then write nothing


@dataclass(slots=True, frozen=True)
class FrameAt:
    """A frame that was written. `row`: its entry in the table of contents of a pack; `place`: where it is in
    the pack."""

    row: FrameRow
    place: PackPosition


class ObjectStore:
    """Packs and their index. `packs`: where they are stored; by default files of the data folder, each of
    which is closed once it has `pack_file_bytes` bytes. `verify`: compare every object with its digest when
    it is read. `quota`: limits of repositories' owners; None for no limit."""

    def __init__(
        self,
        data_dir: Path,
        db: Database,
        packs: Packs | None = None,
        *,
        pack_file_bytes: int = ROLL_BYTES,
        cache_bytes: int = CACHE_BYTES,
        verify: bool = False,
        quota: Quota | None = None,
    ) -> None:
        self.packs: Packs = packs or PackFiles(data_dir / FOLDER, pack_file_bytes)
        self._db = db
        self._streaming: Counter[str] = Counter()
        self._cache = FrameCache(cache_bytes)
        self._room = Room(ROOM_BYTES)
        self._verify = verify
        self._quota = quota

    async def close(self) -> None:
        await self.packs.close()

    # --- writing

    async def append(self, frames: Sequence[Frame], sync: bool = True) -> list[FrameAt]:
        """Write frames whose content is verified. With `sync`, they are durable when this returns; without,
        they become durable by a call of the method `sync`. No repository can read their objects until `index`
        is called. Raises Unavailable if writing fails."""
        places = await self.packs.append([frame.stored for frame in frames], sync)
        return [FrameAt(frame.row, place) for frame, place in zip(frames, places, strict=True)]

    async def sync(self, placed: Sequence[FrameAt]) -> None:
        """Make frames durable that were appended with `sync=False`."""
        await self.packs.sync([frame.place for frame in placed])

    async def index(
        self, tx: Tx, placed: Sequence[FrameAt], repo_id: str | None, directories: bool = False
    ) -> set[bytes]:
        """Record the objects of durable frames in the index, and make them reachable from `repo_id`, unless
        it is None. `directories`: the objects are tree directories. An object that is in the index already
        keeps its position, and the collector deletes the new copy. Returns the digests that were new."""
        digests = [row.digest for frame in placed for row in frame.row.objects]
        before = await self.find_stored(tx, digests)
        indexed, now = set(before), now_ms()
        for name in dict.fromkeys(frame.place.pack for frame in placed):
            mine = [frame for frame in placed if frame.place.pack == name]
            await self._index_pack(tx, name, mine, indexed, directories, now)
        if repo_id is not None:
            await self.link(tx, repo_id, digests)
        return indexed - before

    async def _index_pack(
        self, tx: Tx, name: str, placed: list[FrameAt], indexed: set[bytes], directories: bool, now: int
    ) -> None:
        frames, objects = [], []
        await tx.many(rows.PACK_INSERT, [{"name": name, "size": 0, "created_at": now}])
        pack_id = await tx.value(rows.PACK_ID, name=name)
        for frame in placed:
            fresh = _to_index_rows(frame, indexed, pack_id, directories, now)
            if fresh:
                row = frame.row
                frames.append(
                    {
                        "pack_id": pack_id,
                        "offset": frame.place.offset,
                        "stored_len": row.stored_len,
                        "raw_len": row.raw_len,
                        "codec": row.codec,
                    }
                )
                objects += fresh
        await tx.many(rows.FRAME_INSERT, frames)
        # Always in one order, so that two uploads of the same objects cannot deadlock.
        await tx.many(rows.OBJECT_INSERT, sorted(objects, key=_digest))
        end = max(frame.place.offset + frame.row.stored_len for frame in placed)
        await tx.many(rows.PACK_GROW, [{"pack_id": pack_id, "end": end}])

    async def link(self, tx: Tx, repo_id: str, digests: Iterable[bytes]) -> None:
        """Make stored objects reachable from a repository, and count them for its owner. The caller must have
        checked that this is allowed. Raises QuotaExceeded."""
        unique = sorted(set(digests))
        fresh = await tx.all(usage.FRESH, of_repo=repo_id, digests=unique) if unique else []
        if objects := sum(row[0] for row in fresh):
            await tx.many(rows.SCOPE_INSERT, [{"repo_id": repo_id, "digest": digest} for digest in unique])
            await quotas.count(tx, repo_id, objects, sum(row[1] for row in fresh), self._quota)

    async def put(self, repo_id: str | None, data: bytes, tx: Tx | None = None) -> bytes:
        """Store one object; returns its digest. See `put_many`."""
        digest = blake3_digest(data)
        await self.put_many(repo_id, {digest: data}, tx=tx)
        return digest

    async def put_many(
        self,
        repo_id: str | None,
        objects: Mapping[bytes, bytes],
        *,
        directories: bool = False,
        tx: Tx | None = None,
    ) -> None:
        """Store objects under their digests and make them reachable from `repo_id`, in `tx` or in a new
        transaction.

        The digests are not verified here. `directories`: the objects are tree directories. Their digest is
        not the BLAKE3 of the bytes, so they are not verified when read, and are never served by digest.
        """
        placed = await self.place(objects, repo_id, tx)
        if tx is not None:
            await self.admit(tx, placed, repo_id, list(objects), directories)
            return
        async with self._db.write() as own:
            await self.admit(own, placed, repo_id, list(objects), directories)

    async def place(
        self, objects: Mapping[bytes, bytes], repo_id: str | None, tx: Tx | None = None
    ) -> list[FrameAt]:
        """Write frames for those objects that the repository does not hold yet, and return the frames.
        `admit` then makes the objects reachable. Call this before the transaction, so that other writers of
        the database do not wait for the disk.

        Objects that only other repositories hold are written again, because the time of an upload would
        otherwise reveal what other repositories have; the collector deletes the copies. If `repo_id` is None,
        objects that any repository holds are skipped."""
        if tx is None:
            async with self._db.read() as own:
                lacking = await self._find_missing(own, repo_id, list(objects))
        else:
            lacking = await self._find_missing(tx, repo_id, list(objects))
        fresh = {digest: data for digest, data in objects.items() if digest in lacking}
        if not fresh:
            return []
        size = sum(map(len, fresh.values()))
        frames = (
            _frame_objects(fresh) if size <= INLINE_BYTES else await asyncio.to_thread(_frame_objects, fresh)
        )
        return await self.append(frames)

    async def _find_missing(self, tx: Tx, repo_id: str | None, digests: Sequence[bytes]) -> set[bytes]:
        if repo_id is None:
            return set(digests) - await self.find_stored(tx, digests)
        return await self.find_missing(tx, repo_id, digests)

    async def admit(
        self,
        tx: Tx,
        placed: Sequence[FrameAt],
        repo_id: str | None,
        digests: Sequence[bytes],
        directories: bool = False,
    ) -> None:
        """Make `digests` reachable from a repository. Each is a durable object in `placed`, or was already
        stored when `place` was called. Raises Unavailable if the collector has deleted such a stored object
        meanwhile."""
        fresh = await self.index(tx, placed, None, directories)
        older = sorted(set(digests) - fresh)
        seen = await tx.all(rows.SEEN, digests=older)
        if stale := [row[0] for row in seen if self.stale(row[1])]:
            await self.touch(tx, stale)  # the collector spares touched objects
        if len(seen) < len(older) or len(await self.find_stored(tx, stale)) < len(stale):
            raise Unavailable("the upload ran into a clean-up of old bytes; send it again")
        if repo_id is not None:
            await self.link(tx, repo_id, digests)

    # --- asking

    async def find_stored(self, tx: Tx, digests: Sequence[bytes]) -> set[bytes]:
        """Those of the digests whose objects are stored, for any repository. Never use the result in answers
        to clients, because it would reveal what other repositories have."""
        return {row[0] for row in await tx.all(rows.KNOWN, digests=digests)}

    async def find_missing(self, tx: Tx, repo_id: str, digests: Sequence[bytes]) -> set[bytes]:
        """Those of the digests whose objects the repository cannot reach."""
        return set(digests) - {row[0] for row in await tx.all(rows.IN_REPO, repo_id=repo_id, digests=digests)}

    async def has_all(self, tx: Tx, repo_id: str, digests: Sequence[bytes]) -> bool:
        return not await self.find_missing(tx, repo_id, digests)

    def stale(self, last_seen: int) -> bool:
        """Whether an object that was last seen at this time (milliseconds) must be touched to protect it from
        the collector."""
        return last_seen < now_ms() - STALE_TOUCH

    async def touch(self, tx: Tx, digests: Sequence[bytes]) -> None:
        """Protect these objects from the collector for another day, because something refers to them or soon
        will."""
        now = now_ms()
        await tx.run(rows.TOUCH, digests=digests, now=now, stale=now - STALE_TOUCH)

    async def locate(
        self, digests: Sequence[bytes], repo_id: str | None = None, tx: Tx | None = None
    ) -> dict[bytes, Located]:
        """The places of these objects; objects that are not stored, or that `repo_id` cannot reach, are left
        out."""
        if tx is None:
            async with self._db.read(near=len(digests) <= FEW) as own:
                return await self.locate(digests, repo_id, own)
        unique = list(dict.fromkeys(digests))
        if repo_id is None:
            places = await tx.all(rows.LOCATE, digests=unique)
        else:
            places = await tx.all(rows.LOCATE_IN_REPO, repo_id=repo_id, digests=unique)
        return {row[0]: rows.to_located(row) for row in places}

    # --- reading

    async def read(self, digest: bytes, repo_id: str | None = None, tx: Tx | None = None) -> bytes:
        """The bytes of one object. Raises NotFound if it is not stored or `repo_id` cannot reach it."""
        return (await self.read_many([digest], repo_id, tx))[digest]

    async def read_many(
        self,
        digests: Sequence[bytes],
        repo_id: str | None = None,
        tx: Tx | None = None,
        *,
        cache: bool = True,
        heavy: bool = False,
    ) -> dict[bytes, bytes]:
        """The bytes of all these objects by digest. Each frame is read and decompressed once. Raises NotFound
        unless all exist. See `read_located` for the other parameters."""
        located = await self.locate(digests, repo_id, tx)
        if len(located) < len(set(digests)):
            raise NotFound
        return await self.read_located(list(located.values()), tx, cache=cache, heavy=heavy)

    async def read_located(
        self, located: Sequence[Located], tx: Tx | None = None, *, cache: bool = True, heavy: bool = False
    ) -> dict[bytes, bytes]:
        """The bytes of objects at known positions, by digest. Objects that the collector moved meanwhile are
        located again. `cache`: keep decompressed frames unless they are too large; False if the frames are
        not needed again. `heavy`: decompress in the pool for work that keeps a core busy."""
        try:
            return await self._read(located, cache, heavy)
        except PackGone:
            moved = await self.locate([each.digest for each in located], None, tx)
            return await self._read([moved.get(each.digest, each) for each in located], cache, heavy)

    async def _read(self, located: Sequence[Located], cache: bool, heavy: bool) -> dict[bytes, bytes]:
        groups: dict[FrameKey, list[Located]] = {}
        for entry in located:
            groups.setdefault(entry.frame, []).append(entry)
        objects: dict[bytes, bytes] = {}
        unread: list[list[Located]] = []
        for key, group in groups.items():
            raw = self._cache.get(key)
            if raw is None:
                unread.append(group)
            else:
                objects |= cut_objects(group, raw, self._verify)
        return objects | await self._load(unread, self._cache.largest if cache else 0, heavy)

    async def _load(self, groups: Sequence[list[Located]], keep: int, heavy: bool) -> dict[bytes, bytes]:
        """Read objects from their packs. Returns their bytes by digest. `groups`: each group has objects of
        one frame. Only a limited amount is in memory at a time, because even tiny objects may be in large
        frames. Frames of at most `keep` bytes are cached. `heavy`: as for `read_located`."""
        by_pack: dict[str, list[list[Located]]] = {}
        for group in groups:
            by_pack.setdefault(group[0].pack, []).append(group)
        objects: dict[bytes, bytes] = {}
        for name, groups_of_pack in by_pack.items():
            for part in split_batches(groups_of_pack, PORTION, lambda group: _weigh(group, keep)):
                objects |= await self._unpack(name, part, keep, heavy)
        return objects

    async def _unpack(
        self, name: str, part: list[list[Located]], keep: int, heavy: bool
    ) -> dict[bytes, bytes]:
        """Read some frames of the pack `name`, and return their objects by digest. `part`: for each frame,
        the objects to return. Frames of at most `keep` bytes are cached. `heavy`: as for `read_located`."""
        ranges = [(group[0].frame_offset, group[0].stored_len) for group in part]
        use = partial(unpack_frames, part, keep=keep, verify=self._verify)
        if sum(group[0].raw_len for group in part) <= INLINE_BYTES:
            objects, whole = await self.packs.read_with(name, ranges, use, inline)
        else:
            async with self._room.of(sum(_weigh(group, keep) for group in part)):
                run = run_in_pool if heavy else asyncio.to_thread
                objects, whole = await self.packs.read_with(name, ranges, use, run)
        for key, raw in whole.items():
            self._cache.put(key, raw)
        return objects

    async def show(self, located: Sequence[Located], use: Callable[[memoryview], object]) -> None:
        """Call `use` with the bytes of these objects, in order, piece by piece and off the event loop. A
        piece is valid only during the call that gets it. Neighbouring uncompressed objects are passed in
        large pieces without a copy."""
        for group in group_located(located):
            if not self._verify and is_plain(group[0]):
                [(name, merged)] = find_runs([(each.frame, each.stored_len) for each in group], sys.maxsize)
                with contextlib.suppress(PackGone):
                    await self.packs.show(name, merged, use)
                    continue
            data = await self.read_located(group, cache=False)
            await asyncio.to_thread(use_each, use, [data[each.digest] for each in group])

    async def stream_stored(self, ranges: Sequence[tuple[FrameKey, int]]) -> AsyncGenerator[bytes, None]:
        """Yields stored frames, given as (key, length), in order and about a MiB at a time. Neighbouring
        frames are read together. The packs are not deleted before the end."""
        packs = {name for (name, _), _ in ranges}
        self._streaming.update(packs)
        try:
            for name, merged in find_runs(ranges, MIB):
                yield b"".join(await self.packs.read(name, merged))
        finally:
            self._streaming.subtract(packs)

    def streaming(self, name: str) -> bool:
        """Whether frames of this pack are being sent to a client."""
        return self._streaming[name] > 0


def _weigh(group: list[Located], keep: int) -> int:
    """How many bytes of memory it takes to extract these objects from their frame: its stored bytes and the
    decompressed bytes."""
    return bytes_to_unpack(group, keep) + group[0].stored_len


def _to_index_rows(
    frame: FrameAt, indexed: set[bytes], pack_id: int, directories: bool, now: int
) -> list[dict[str, object]]:
    """Make the index rows for those objects of a frame that are not in `indexed`, and add their digests to
    it. `directories`: the objects are tree directories."""
    fresh: list[dict[str, object]] = []
    offset = 0
    for entry in frame.row.objects:
        if entry.digest not in indexed:
            indexed.add(entry.digest)
            fresh.append(
                {
                    "digest": entry.digest,
                    "pack_id": pack_id,
                    "frame_offset": frame.place.offset,
                    "offset": offset,
                    "size": entry.size,
                    "directory": directories,
                    "last_seen": now,
                }
            )
        offset += entry.size
    return fresh


def _digest(row: dict[str, object]) -> bytes:
    digest = row["digest"]
    assert isinstance(digest, bytes)  # noqa: S101  # `_to_index_rows` made it
    return digest


def _frame_objects(objects: Mapping[bytes, bytes]) -> list[Frame]:
    """Put objects into frames. Small objects share a frame."""
    writer = PackWriter()
    packs = [pack for digest, data in objects.items() for pack in writer.add(digest, data, text=True)]
    return [frame for pack in [*packs, *writer.finish()] for frame in pack.frames]
