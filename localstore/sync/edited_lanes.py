"""A cache of the lanes that this command edited, so that they need not be built again when the relay
answers."""

from __future__ import annotations

import msgspec

from localstore.core.lane.first_edit import FirstEdit
from localstore.core.lane.lane import Lane
from localstore.core.model.limits import MIB
from localstore.record.entry import PathRecord

CACHE_BYTES = 32 * MIB  # of their texts


class _CachedLane(msgspec.Struct, frozen=True):
    """A lane in the cache. `version`: what `_version` returned for the path's entry when the lane was cached.
    If it returns something else now, the cached lane is out of date. `size`: bytes of the lane's text."""

    lane: Lane | FirstEdit
    version: tuple[object, ...]
    size: int


class EditedLanes:
    """A cache of lanes by path. Each lane has its confirmed state and every pending update applied."""

    def __init__(self) -> None:
        self._lanes: dict[str, _CachedLane] = {}
        self._bytes = 0

    def keep(self, entry: PathRecord, lane: Lane | FirstEdit) -> None:
        """Cache the lane of an entry, unless the cache would then exceed CACHE_BYTES."""
        self._forget(entry.path)
        if self._bytes + entry.size <= CACHE_BYTES:
            self._bytes += entry.size
            self._lanes[entry.path] = _CachedLane(lane, _version(entry), entry.size)

    def pop(self, entry: PathRecord) -> Lane | FirstEdit | None:
        """Remove the lane of the path from the cache and return it. None if it is not cached, or if the entry
        has changed since it was cached."""
        held = self._forget(entry.path)
        return held.lane if held is not None and held.version == _version(entry) else None

    def _forget(self, path: str) -> _CachedLane | None:
        held = self._lanes.pop(path, None)
        if held is not None:
            self._bytes -= held.size
        return held


def _version(entry: PathRecord) -> tuple[object, ...]:
    """A value that changes whenever the lane of the entry changes."""
    return entry.gen, entry.epoch, entry.seen, entry.pending, entry.want
