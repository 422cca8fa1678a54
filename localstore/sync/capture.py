"""A save made outside becomes lane operations (device rule 2).

The difference is always taken from the shadow, the bytes this device last knew on the disk, never from the
sealed tree: what others wrote since is not ours to undo.
"""

from __future__ import annotations

from collections.abc import Iterable

from localstore.core.classify import kind_of
from localstore.core.encoding import digest
from localstore.core.errors import TooLarge
from localstore.core.lane import Lane
from localstore.core.lane_carry import onto
from localstore.core.limits import MIB, TEXT_FILE
from localstore.entry import Entry
from localstore.sync.device import Device

BATCH_BYTES = 32 * MIB  # of texts that one step stores


def capture(device: Device, found: Iterable[str]) -> set[str]:
    """Capture the text edits at these paths, which may be any. Returns those whose edit has too many parts
    for an update: they are sent as new versions."""
    in_flight = device.db.flight_kinds()
    too_large = set()
    batch = _Batch(device)
    for path in found:
        entry = device.entries.get(path)
        if entry is None or entry.kind != "text" or not entry.gen or entry.foreign or entry.shadow is None:
            continue
        if in_flight.get(path, "edit_text") != "edit_text":
            continue  # a create or a delete is under way: what it replaces is settled first
        data = _text_on_disk(device, path)
        if data is not None and digest(data) != entry.shadow and not _capture(device, batch, entry, data):
            too_large.add(path)
    batch.store()
    return too_large


class _Batch:
    """Captured edits on their way into the database: texts first, then entries and updates in one step."""

    def __init__(self, device: Device) -> None:
        self._device = device
        self._texts: dict[bytes, bytes] = {}
        self._captured: list[tuple[Entry, Lane, bytes, tuple[bytes, bytes, int] | None]] = []
        self._bytes = 0

    def add(self, entry: Entry, shown: bytes, update: tuple[bytes, bytes] | None, lane: Lane) -> None:
        """`shown`: what the disk holds; `update`: the operations and the text that they lead to, if any, in
        the lane that they were made in."""
        edit = None if update is None else (update[0], self._text(update[1]), len(update[1]))
        self._captured.append((entry, lane, self._text(shown), edit))
        if self._bytes > BATCH_BYTES:
            self.store()

    def _text(self, text: bytes) -> bytes:
        name = digest(text)
        self._texts[name] = text
        self._bytes += len(text)
        return name

    def store(self) -> None:
        if not self._captured:
            return
        device = self._device
        device.objects.add(self._texts.items())
        with device.db.step():
            for entry, lane, shown, edit in self._captured:
                entry.shadow = shown
                if edit is not None:
                    ops, entry.want, entry.size = edit
                    entry.pending += 1
                    device.db.add_pending(entry.path, ops)
                    device.edited.keep(entry, lane)
                device.save(entry)
        self._texts, self._captured, self._bytes = {}, [], 0


def _capture(device: Device, batch: _Batch, entry: Entry, data: bytes) -> bool:
    assert entry.shadow is not None  # noqa: S101 - checked by the caller
    lane = device.current(entry)
    try:
        if entry.settled:
            update = lane.edit(device.replica, data)
        else:
            update = onto(device.text(entry.shadow), data, lane.text(), device.replica, lane)
    except TooLarge:
        return False
    batch.add(entry, data, None if update is None else (update, lane.text()), lane)
    return True


def absorb(device: Device, entry: Entry, before: bytes, data: bytes) -> bool:
    """Take in a save that slipped into an exchange: `data`, made from `before`, while the lane has moved on.

    Part of the caller's step. False if the two cannot be joined.
    """
    lane = device.current(entry)
    try:
        update = onto(before, data, lane.text(), device.replica, lane)
    except TooLarge:
        return False
    if update is not None:
        want = lane.text()
        entry.want, entry.size = digest(want), len(want)
        device.objects.add([(entry.want, want)])
        device.db.add_pending(entry.path, update)
        entry.pending += 1
    return True


def _text_on_disk(device: Device, path: str) -> bytes | None:
    data = device.files.read_up_to(path, TEXT_FILE)
    return data if data is not None and kind_of(data) == "text" else None
