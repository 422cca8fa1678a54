"""Checks packs. Every frame of the index must be stored, and every object must match its digest."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator, Sequence

from localstore.core.encoding import digest as blake3_digest
from localstore.core.errors import SvcError, Unavailable
from localstore.core.model.limits import MIB
from localstore.core.storage.frame import read_object
from relay.db.engine.database import Database, Row
from relay.domain.upkeep.rows import verification as rows
from relay.domain.upkeep.rows.verification import FrameRow
from relay.objects.backend import PackGone
from relay.objects.store import ObjectStore

AT_ONCE = 16 * MIB  # raw bytes of frames in memory


async def check(db: Database, store: ObjectStore) -> AsyncIterator[str]:
    sizes = {info.name: info.size async for info in store.packs.list_packs()}
    async with db.read() as tx:
        packs = await tx.all(rows.PACKS)
    for pack_id, name, size in packs:
        if sizes.get(name, 0) < size:
            yield f"pack {name}: {sizes.get(name, 0)} bytes are there, the index speaks of {size}"
        async with db.read() as tx:
            frames = [rows.to_frame(values) for values in await tx.all(rows.FRAMES, pack_id=pack_id)]
        for batch in _batches(frames):
            async for finding in _check_frames(db, store, pack_id, name, batch):
                yield finding


def _batches(frames: Sequence[FrameRow]) -> Iterator[list[FrameRow]]:
    batch: list[FrameRow] = []
    size = 0
    for frame in frames:
        if batch and size + frame.raw_len > AT_ONCE:
            yield batch
            batch, size = [], 0
        batch.append(frame)
        size += frame.raw_len
    if batch:
        yield batch


async def _check_frames(
    db: Database, store: ObjectStore, pack_id: int, name: str, batch: list[FrameRow]
) -> AsyncIterator[str]:
    async with db.read() as tx:
        objects = await tx.all(rows.FRAME_OBJECTS, pack_id=pack_id, frames=[frame.offset for frame in batch])
    held: dict[int, list[Row]] = {}
    for row in objects:
        held.setdefault(row[0], []).append(row)
    try:
        stored = await store.packs.read(name, [(frame.offset, frame.stored_len) for frame in batch])
    except Unavailable as error:
        if len(batch) == 1:
            what = error.what if isinstance(error, PackGone) else error.detail
            yield f"pack {name}, frame at {batch[0].offset}: {what}"
            return
        for frame in batch:  # find the ones that cannot be read
            async for finding in _check_frames(db, store, pack_id, name, [frame]):
                yield finding
        return
    for line in await asyncio.to_thread(_wrong_objects, name, batch, stored, held):
        yield line


def _wrong_objects(
    name: str, batch: list[FrameRow], stored: list[bytes], held: dict[int, list[Row]]
) -> list[str]:
    wrong: list[str] = []
    for frame, data in zip(batch, stored, strict=True):
        try:
            raw = read_object(data, frame.codec, frame.raw_len, 0, frame.raw_len)
        except SvcError as error:
            wrong.append(f"pack {name}, frame at {frame.offset}: {error.detail}")
            continue
        for _, start, size, digest, directory in held.get(frame.offset, ()):
            piece = raw[start : start + size]
            if len(piece) != size or (not directory and blake3_digest(piece) != digest):
                wrong.append(f"object {bytes(digest).hex()}: pack {name} holds other bytes under its name")
    return wrong
