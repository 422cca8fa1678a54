"""Reclaims space: rewrites packs whose content is mostly unreferenced, and deletes packs without frames.

First new frames are made durable, then one transaction points the objects to them, then the old file is
deleted. A crash in between leaves bytes that no row refers to, which a later run deletes. Only packs without
writes since `before` are touched, because running uploads may have frames in younger packs. A process does
not know which packs other processes are sending to clients. So if other processes share the database, the old
file is deleted only by the next run.
"""

from __future__ import annotations

import asyncio
import itertools
from dataclasses import dataclass, field

from localstore.core.encoding import digest as blake3_digest
from localstore.core.model.limits import MIB
from localstore.core.storage.frame import ZSTD, read_object
from localstore.core.storage.pack import Frame, FrameRow, ObjectRow, PackWriter
from relay.base.clock import now_ms
from relay.db.engine.database import Database, Tx
from relay.db.storage import collect as rows
from relay.db.storage import object as objects
from relay.objects.frames import WAY_OUT, BytesDamaged
from relay.objects.store import FrameAt, ObjectStore

LIVING_SHARE = 0.5  # a pack with a smaller live share is rewritten
AT_ONCE = 16 * MIB  # raw bytes of frames in memory
_NAMES = 1000


@dataclass(slots=True, frozen=True)
class _Old:
    """A frame of an old pack, with the number of its decompressed bytes that are still referred to."""

    offset: int
    stored_len: int
    raw_len: int
    codec: int
    living: int


@dataclass(slots=True, frozen=True)
class _Object:
    frame: int
    offset: int
    size: int
    digest: bytes
    directory: bool


@dataclass(slots=True)
class Freed:
    """The space that a run freed, in bytes as stored in packs. `emptied`: packs whose rows were deleted."""

    frames: int = 0
    rewritten: int = 0
    emptied: set[str] = field(default_factory=set)
    packs: int = 0
    bytes: int = 0


async def compact(db: Database, store: ObjectStore, before: int, pause: float = 0) -> Freed:
    """Reclaim space: rewrite packs whose content is mostly unreferenced, and delete packs without frames.
    Packs that were written to after `before` (ms UTC) are left alone. `pause`: seconds between deleting a
    pack's rows and deleting its file, for requests that have already read the rows."""
    freed = Freed()
    ages = {info.name: info.changed_at async for info in store.packs.list_packs()}
    after = 0
    while page := await _page(db, after):
        for pack_id, name, size in page:
            after = pack_id
            if ages.get(name, now_ms()) < before:
                await _tidy(db, store, pack_id, name, size, freed)
    if not db.shared:
        await asyncio.sleep(pause if freed.emptied else 0)
    await _delete_unknown(db, store, before, freed)
    return freed


async def _page(db: Database, after: int) -> list[tuple[int, str, int]]:
    async with db.read() as tx:
        packs = await tx.all(rows.PACKS, after=after, limit=_NAMES)
    return [(int(row[0]), str(row[1]), int(row[2])) for row in packs]


async def _tidy(db: Database, store: ObjectStore, pack_id: int, name: str, size: int, freed: Freed) -> None:
    async with db.write() as tx:
        freed.frames += await tx.run(rows.DROP_FRAMES, pack_id=pack_id)
    async with db.read() as tx:
        frames = [_Old(*map(int, row)) for row in await tx.all(rows.FRAMES, pack_id=pack_id)]
    living = sum(frame.stored_len * frame.living / max(frame.raw_len, 1) for frame in frames)
    if frames and living < size * LIVING_SHARE:
        await _rewrite(db, store, pack_id, name, frames)
        freed.rewritten += 1
        frames = []
    if not frames:
        async with db.write() as tx:
            if await tx.run(rows.DROP_PACK, pack_id=pack_id):
                freed.emptied.add(name)


async def _rewrite(db: Database, store: ObjectStore, pack_id: int, name: str, frames: list[_Old]) -> None:
    batch: list[_Old] = []
    size = 0
    for frame in frames:
        if batch and size + frame.raw_len > AT_ONCE:
            await _move(db, store, pack_id, name, batch)
            batch, size = [], 0
        batch.append(frame)
        size += frame.raw_len
    await _move(db, store, pack_id, name, batch)


async def _move(db: Database, store: ObjectStore, pack_id: int, name: str, batch: list[_Old]) -> None:
    async with db.read() as tx:
        objects = await tx.all(rows.FRAME_OBJECTS, pack_id=pack_id, frames=[frame.offset for frame in batch])
    held: dict[int, list[_Object]] = {frame.offset: [] for frame in batch}
    for row in objects:
        held[row[0]].append(_Object(row[0], row[1], row[2], bytes(row[3]), bool(row[4])))
    stored = await store.packs.read(name, [(frame.offset, frame.stored_len) for frame in batch])
    frames = await asyncio.to_thread(_frame_objects, batch, stored, held)
    placed = await store.append(frames)
    where = {each.digest: each for group in held.values() for each in group}
    async with db.write() as tx:
        await _point_objects(tx, pack_id, placed, where)
        await tx.run(rows.DROP_FRAMES, pack_id=pack_id)


def _frame_objects(batch: list[_Old], stored: list[bytes], held: dict[int, list[_Object]]) -> list[Frame]:
    """The new frames for the referenced objects of the frames in `batch`. `stored`: the stored bytes of these
    frames; `held`: the referenced objects by the offset of their frame. A frame whose objects are all
    referenced is kept as stored. The referenced objects of all other frames are framed again."""
    frames: list[Frame] = []
    writer = PackWriter()
    packs = []
    for old, data in zip(batch, stored, strict=True):
        group = held[old.offset]
        whole = old.living == old.raw_len and len(group) > 0
        if whole and all(a.offset + a.size == b.offset for a, b in itertools.pairwise(group)):
            objects_ = [ObjectRow(each.digest, each.size) for each in group]
            frames.append(Frame(FrameRow(old.codec, old.raw_len, old.stored_len, objects_), data))
            continue
        for each in group:
            raw = read_object(data, old.codec, old.raw_len, each.offset, each.size)
            if not each.directory and blake3_digest(raw) != each.digest:
                raise BytesDamaged(f"the stored bytes of {each.digest.hex()[:12]} are damaged; {WAY_OUT}")
            packs += writer.add(each.digest, raw, text=old.codec == ZSTD)
    return frames + [frame for pack in [*packs, *writer.finish()] for frame in pack.frames]


async def _point_objects(tx: Tx, old_pack: int, placed: list[FrameAt], where: dict[bytes, _Object]) -> None:
    """Point the rows of objects to their new frames. `placed`: the new frames; `where`: the objects' places
    in the pack `old_pack`, by digest. Objects that were deleted meanwhile stay deleted."""
    now = now_ms()
    for name in dict.fromkeys(frame.place.pack for frame in placed):
        frames_of_pack = [frame for frame in placed if frame.place.pack == name]
        await tx.many(objects.PACK_INSERT, [{"name": name, "size": 0, "created_at": now}])
        pack_id = await tx.value(objects.PACK_ID, name=name)
        await tx.many(objects.FRAME_INSERT, [_frame_row(pack_id, frame) for frame in frames_of_pack])
        await tx.many(
            rows.MOVE_OBJECT,
            [
                {
                    "one": each.digest,
                    "old_pack": old_pack,
                    "old_frame": where[each.digest].frame,
                    "new_pack": pack_id,
                    "new_frame": frame.place.offset,
                    "new_offset": offset,
                }
                for each, offset, frame in sorted(
                    (
                        (each, offset, frame)
                        for frame in frames_of_pack
                        for offset, each in _offsets(frame.row)
                    ),
                    key=_digest,  # the order in which other transactions lock them
                )
            ],
        )
        end = max(frame.place.offset + frame.row.stored_len for frame in frames_of_pack)
        await tx.run(objects.PACK_GROW, pack_id=pack_id, end=end)


def _digest(moved: tuple[ObjectRow, int, FrameAt]) -> bytes:
    return moved[0].digest


def _offsets(row: FrameRow) -> list[tuple[int, ObjectRow]]:
    offsets, offset = [], 0
    for entry in row.objects:
        offsets.append((offset, entry))
        offset += entry.size
    return offsets


def _frame_row(pack_id: int, frame: FrameAt) -> dict[str, int]:
    return {
        "pack_id": pack_id,
        "offset": frame.place.offset,
        "stored_len": frame.row.stored_len,
        "raw_len": frame.row.raw_len,
        "codec": frame.row.codec,
    }


async def _delete_unknown(db: Database, store: ObjectStore, before: int, freed: Freed) -> None:
    """Delete packs to which no row refers: they were emptied, or their write was interrupted, or their upload
    failed."""
    stay = freed.emptied if db.shared else frozenset[str]()
    old = [
        info async for info in store.packs.list_packs() if info.changed_at < before and info.name not in stay
    ]
    for start in range(0, len(old), _NAMES):
        names = [info.name for info in old[start : start + _NAMES]]
        async with db.read() as tx:
            indexed = {row[0] for row in await tx.all(rows.PACK_NAMES, names=names)}
        unused = [
            info
            for info in old[start : start + _NAMES]
            if info.name not in indexed and not store.streaming(info.name)
        ]
        await store.packs.delete([info.name for info in unused])
        freed.packs += len(unused)
        freed.bytes += sum(info.size for info in unused)
