"""Lanes as a command's captures left them: the answer to what was captured need not make them again."""

from __future__ import annotations

import msgspec

from localstore.core.lane.first_edit import FirstEdit
from localstore.core.lane.lane import Lane
from localstore.core.limits import MIB
from localstore.record.entry import PathRecord

CACHE_BYTES = 32 * MIB  # of their texts


class _CachedLane(msgspec.Struct, frozen=True):
    lane: Lane | FirstEdit
    version: tuple[object, ...]
    size: int


class EditedLanes:
    """Lanes that hold the confirmed state and every pending update of their path, by path."""

    def __init__(self) -> None:
        self._lanes: dict[str, _CachedLane] = {}
        self._bytes = 0

    def keep(self, entry: PathRecord, lane: Lane | FirstEdit) -> None:
        """The lane of an entry as it is now. Left out where memory is used up."""
        self._forget(entry.path)
        if self._bytes + entry.size <= CACHE_BYTES:
            self._bytes += entry.size
            self._lanes[entry.path] = _CachedLane(lane, _version(entry), entry.size)

    def pop(self, entry: PathRecord) -> Lane | FirstEdit | None:
        """The lane of the path, if it still holds just what the record says."""
        held = self._forget(entry.path)
        return held.lane if held is not None and held.version == _version(entry) else None

    def _forget(self, path: str) -> _CachedLane | None:
        held = self._lanes.pop(path, None)
        if held is not None:
            self._bytes -= held.size
        return held


def _version(entry: PathRecord) -> tuple[object, ...]:
    """Changes with everything that changes the lane."""
    return entry.gen, entry.epoch, entry.seen, entry.pending, entry.want
