"""Lanes as a command's captures left them: the answer to what was captured need not make them again."""

from __future__ import annotations

import msgspec

from localstore.core.lane.first_edit import FirstEdit
from localstore.core.lane.lane import Lane
from localstore.core.limits import MIB
from localstore.record.entry import Entry

HELD_BYTES = 32 * MIB  # of their texts


class _Held(msgspec.Struct, frozen=True):
    lane: Lane | FirstEdit
    stand: tuple[object, ...]
    size: int


class EditedLanes:
    """Lanes that hold the confirmed state and every pending update of their path, by path."""

    def __init__(self) -> None:
        self._lanes: dict[str, _Held] = {}
        self._bytes = 0

    def keep(self, entry: Entry, lane: Lane | FirstEdit) -> None:
        """The lane of an entry as it is now. Left out where memory is used up."""
        self._forget(entry.path)
        if self._bytes + entry.size <= HELD_BYTES:
            self._bytes += entry.size
            self._lanes[entry.path] = _Held(lane, _stand(entry), entry.size)

    def take(self, entry: Entry) -> Lane | FirstEdit | None:
        """The lane of the path, if it still holds just what the record says."""
        held = self._forget(entry.path)
        return held.lane if held is not None and held.stand == _stand(entry) else None

    def _forget(self, path: str) -> _Held | None:
        held = self._lanes.pop(path, None)
        if held is not None:
            self._bytes -= held.size
        return held


def _stand(entry: Entry) -> tuple[object, ...]:
    """Changes with everything that changes the lane."""
    return entry.gen, entry.epoch, entry.seen, entry.pending, entry.want
