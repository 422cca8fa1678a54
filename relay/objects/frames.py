"""Extracts objects from stored frames. A cache of limited size keeps decompressed frames, because one frame
has many small objects of a tree."""

from __future__ import annotations

from collections.abc import Sequence

from localstore.core.encoding import digest
from localstore.core.errors import SvcError, Unavailable
from localstore.core.storage.frame import Stored, read_object
from relay.base.recent import Recent
from relay.db.storage.object import Located

WAY_OUT = "tell the operator of this server, who runs: relay audit"
FrameKey = tuple[str, int]
"""The pack of a frame and its offset there."""


class BytesDamaged(Unavailable):
    """Raised if stored bytes are not those that were stored. They do not come back by themselves."""


class FrameCache(Recent[FrameKey, bytes]):
    """A cache of decompressed frames. `limit`: its size in bytes. Frames larger than an eighth of the limit
    are not cached."""

    def __init__(self, limit: int) -> None:
        super().__init__(limit, len, limit // 8)


def unpack_frames(
    groups: Sequence[Sequence[Located]], stored: Sequence[Stored], keep: int, verify: bool
) -> tuple[dict[bytes, bytes], dict[FrameKey, bytes]]:
    """Decompress frames and cut out objects. Returns (objects by digest, decompressed frames for the cache).
    `groups`: for each frame, the objects to cut out; `stored`: the stored bytes of these frames. Frames of at
    most `keep` bytes are returned for the cache; larger frames are decompressed only as far as needed, all in
    one buffer. `verify`: compare objects with their digests. Raises Unavailable for damaged frames."""
    objects: dict[bytes, bytes] = {}
    whole: dict[FrameKey, bytes] = {}
    for group, data in zip(groups, stored, strict=True):
        frame = group[0]
        raw = _unpack_beginning(frame, data, bytes_to_unpack(group, keep))
        objects |= cut_objects(group, raw, verify)
        if frame.raw_len <= keep:
            whole[frame.frame] = raw
    return objects, whole


def bytes_to_unpack(group: Sequence[Located], keep: int) -> int:
    """How many bytes of a frame must be decompressed to get the objects of `group`. A frame of at most `keep`
    bytes is decompressed as a whole, a larger one up to the end of the last object."""
    whole = group[0].raw_len
    return whole if whole <= keep else max(located.offset + located.size for located in group)


def cut_objects(group: Sequence[Located], raw: bytes, verify: bool) -> dict[bytes, bytes]:
    """Cut the objects of one frame out of `raw`, the decompressed bytes of the frame. Returns them by digest.
    `verify`: raise Unavailable unless each object has its digest."""
    objects = {entry.digest: raw[entry.offset : entry.offset + entry.size] for entry in group}
    if verify:
        for entry in group:
            if not entry.directory and digest(objects[entry.digest]) != entry.digest:
                raise BytesDamaged(f"the stored bytes of {entry.digest.hex()[:12]} are damaged; {WAY_OUT}")
    return objects


def _unpack_beginning(frame: Located, stored: Stored, end: int) -> bytes:
    """Decompress the first `end` bytes of a frame."""
    try:
        raw = read_object(stored, frame.codec, frame.raw_len, 0, end)
    except SvcError as error:
        raise BytesDamaged(f"stored bytes are damaged ({error.detail}); {WAY_OUT}") from None
    return raw.obj if isinstance(raw.obj, bytes) and len(raw.obj) == end else bytes(raw)
