"""Makes packs for downloads, with objects that the repository may reach.

A stored frame may also hold objects that were not asked for, or that only another repository may reach. It is
sent unchanged only if the wanted objects fill it without a gap; from other frames the objects are extracted
and framed again. One answer reframes only a limited amount; everything that does not fit is left for the next
request.
"""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field

import msgspec

from localstore.core.model import limits
from localstore.core.model.limits import MIB
from localstore.core.storage.frame import ZSTD
from localstore.core.storage.pack import Frame, FrameRow, ObjectRow, Pack, PackWriter
from relay.base.batches import split_batches
from relay.base.threads import run_in_pool
from relay.db.storage.object import Located
from relay.http.buffers import Lease
from relay.objects.frames import FrameKey
from relay.objects.store import PORTION, ObjectStore

_HEADER = len(next(Pack(b"", []).parts()))
_TOC_OBJECT, _TOC_FRAME, _TOC = 40, 17, 5  # upper bounds of the table's encoding, bytes
REFRAMED = 16 * MIB  # of objects that one answer frames anew: its frames are in memory until they are sent
UNPACKED = 256 * MIB  # of frames that are unpacked for it
_ROW, _STREAM = 256, 2 * MIB  # bytes in memory of the place of a frame, and of what is being sent


@dataclass(slots=True)
class Export:
    """A pack to send. `length`: its size in bytes. `left`: number of requested objects that did not fit."""

    length: int
    left: int
    stream: AsyncIterator[bytes]


@dataclass(slots=True)
class _Plan:
    """The frames selected for a pack, with upper bounds of their sizes. `whole`: objects of frames to send
    unchanged; `parts`: objects to extract from their frames."""

    whole: list[list[Located]] = field(default_factory=list)
    parts: list[list[Located]] = field(default_factory=list)
    objects: int = 0
    stored: int = 0
    raw: int = 0
    toc: int = _TOC
    reframed: int = 0
    unpacked: int = 0

    def add(self, group: list[Located], whole: bool) -> bool:
        """Plan to send the objects of one frame, `group`. `whole`: send the frame unchanged; otherwise these
        objects are extracted from it. Returns False and plans nothing if a limit would be exceeded."""
        size = sum(located.size for located in group)
        stored = group[0].stored_len if whole else size
        toc = len(group) * (_TOC_OBJECT if whole else _TOC_OBJECT + _TOC_FRAME)
        fits = (
            self.toc + toc + _TOC_FRAME <= limits.PACK_TOC_BYTES
            and self.raw + size <= limits.PACK_RAW_BYTES
            and _HEADER + self.toc + toc + _TOC_FRAME + self.stored + stored <= limits.PACK_BYTES
        )
        if not whole:
            reach = group[-1].offset + group[-1].size
            fits = fits and (not self.parts or self._affords(size, reach))
            if fits:
                self.reframed += size
                self.unpacked += reach
        if fits:
            (self.whole if whole else self.parts).append(group)
            self.objects += len(group)
            self.stored += stored
            self.raw += size
            self.toc += toc + _TOC_FRAME
        return fits

    def _affords(self, size: int, reach: int) -> bool:
        """Whether one answer may extract `size` more bytes of objects. For this, `reach` more bytes of frames
        have to be decompressed; both are limited."""
        return self.reframed + size <= REFRAMED and self.unpacked + reach <= UNPACKED


async def export(store: ObjectStore, located: Sequence[Located], lease: Lease) -> Export:
    """Make a pack with these objects, in the given order, until the pack is full. The caller has checked that
    the client may read them. `lease` holds the memory of the pack until the answer is sent."""
    plan = _plan(located)
    await lease.wait(len(plan.whole) * _ROW + _STREAM)
    held = await lease.wait(2 * plan.reframed)
    frames = await _reframe(store, plan.parts)
    rows = [frame.row for frame in frames] + [_to_row(group) for group in plan.whole]
    head = Pack(msgspec.msgpack.encode(rows), frames)
    stored = [(group[0].frame, group[0].stored_len) for group in plan.whole]
    lease.give_back(max(0, held - head.size))
    length = head.size + sum(size for _, size in stored)
    return Export(length, len(located) - plan.objects, _stream(store, head, stored))


def _plan(located: Sequence[Located]) -> _Plan:
    """Decide which frames are sent unchanged and from which ones objects are extracted. Frames are taken in
    order until a limit is reached."""
    groups: dict[FrameKey, list[Located]] = {}
    for entry in located:
        groups.setdefault(entry.frame, []).append(entry)
    plan = _Plan()
    for group in groups.values():
        group.sort(key=lambda entry: (entry.offset, entry.size))
        if not plan.add(group, _fills_frame(group)):
            break
    return plan


def _fills_frame(group: list[Located]) -> bool:
    """Whether the objects of `group` fill their frame without gaps."""
    end = 0
    for entry in group:
        if entry.offset != end:
            return False
        end += entry.size
    return end == group[0].raw_len


def _to_row(group: list[Located]) -> FrameRow:
    first = group[0]
    objects = [ObjectRow(located.digest, located.size) for located in group]
    return FrameRow(first.codec, first.raw_len, first.stored_len, objects)


async def _reframe(store: ObjectStore, groups: list[list[Located]]) -> list[Frame]:
    """Extract objects and put them into new frames. They are read in portions, of which only one is in memory
    at a time. `groups`: each group has objects of one frame."""
    writer = PackWriter()
    frames: list[Frame] = []
    for part in split_batches(groups, PORTION, _size_of):
        located = [each for group in part for each in group]
        data = await store.read_located(located, heavy=True)
        frames += await run_in_pool(_frame_objects, writer, located, data)
    return frames + [frame for pack in writer.finish() for frame in pack.frames]


def _size_of(group: list[Located]) -> int:
    return sum(located.size for located in group)


def _frame_objects(writer: PackWriter, located: list[Located], data: dict[bytes, bytes]) -> list[Frame]:
    packs = []
    for entry in located:
        packs += writer.add(entry.digest, data[entry.digest], text=entry.codec == ZSTD)
    return [frame for pack in packs for frame in pack.frames]


async def _stream(store: ObjectStore, head: Pack, stored: list[tuple[FrameKey, int]]) -> AsyncIterator[bytes]:
    async with contextlib.aclosing(store.stream_stored(stored)) as frames:
        first = await anext(frames, b"")  # before anything is sent: if it is lost, the client is told so
        for part in head.parts():
            yield part
        yield first
        async for part in frames:
            yield part
