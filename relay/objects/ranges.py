"""Groups reads of objects and stored frames, so that one read of a pack gets several of them."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence

from localstore.core.storage.frame import RAW
from relay.db.storage.object import Located
from relay.objects.frames import FrameKey

SHOWN_OBJECTS = 64  # chunks of a large file that are read in one go: about 4 MiB


def is_plain(entry: Located) -> bool:
    """Whether the object alone fills its frame, and the frame is not compressed."""
    return entry.codec == RAW and entry.size == entry.raw_len


def group_located(located: Sequence[Located]) -> Iterator[list[Located]]:
    """Yields the objects in groups, in the given order. A group has at most SHOWN_OBJECTS objects, all of the
    same pack. Either each of them fills an uncompressed frame alone (`is_plain`) or none does."""
    for _, same in itertools.groupby(
        located, lambda located_object: (located_object.pack, is_plain(located_object))
    ):
        while group := list(itertools.islice(same, SHOWN_OBJECTS)):
            yield group


def find_runs(
    ranges: Sequence[tuple[FrameKey, int]], enough: int
) -> Iterator[tuple[str, list[tuple[int, int]]]]:
    """Group stored frames into reads of about `enough` bytes each. `ranges`: the frames, as (key, length).
    Yields the reads, as (pack, [(offset, length), …]). Adjacent frames are read together; longer frames are
    split."""
    pack, merged, size = "", list[tuple[int, int]](), 0
    for (name, offset), length in _cut(ranges, enough):
        if merged and (name != pack or size >= enough):
            yield pack, merged
            merged, size = [], 0
        pack, size = name, size + length
        if merged and sum(merged[-1]) == offset:
            merged[-1] = (merged[-1][0], merged[-1][1] + length)
        else:
            merged.append((offset, length))
    if merged:
        yield pack, merged


def _cut(ranges: Sequence[tuple[FrameKey, int]], most: int) -> Iterator[tuple[FrameKey, int]]:
    for (name, offset), length in ranges:
        for start in range(0, max(length, 1), most):
            yield (name, offset + start), min(most, length - start)
