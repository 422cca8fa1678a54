"""A save made outside becomes lane operations (device rule 2).

The difference is always taken from the shadow, the bytes this device last knew on the disk, never from the
sealed tree: what others wrote since is not ours to undo.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from localstore.core.classify import kind_of
from localstore.core.encoding import digest
from localstore.core.errors import TooLarge
from localstore.core.lane import Lane
from localstore.core.lane_carry import onto
from localstore.core.lane_first import FirstEdit, first_edit
from localstore.core.limits import MIB, TEXT_FILE
from localstore.entry import Entry
from localstore.found import Scan
from localstore.sync.device import Device

BATCH_BYTES = 32 * MIB  # of texts that one step stores


def capture(device: Device, found: Iterable[str], scan: Scan | None = None) -> set[str]:
    """Capture the text edits at these paths, which may be any. Returns those whose edit has too many parts
    for an update: they are sent as new versions. `scan`: a look at the folder just now, whose word is taken
    where it still holds the bytes."""
    in_flight = device.db.flight_kinds()
    too_large = set()
    batch = _Batch(device)
    for path in found:
        entry = device.entries.get(path)
        if entry is None or entry.kind != "text" or not entry.gen or entry.foreign or entry.shadow is None:
            continue
        if in_flight.get(path, "edit_text") != "edit_text":
            continue  # a create or a delete is under way: what it replaces is settled first
        shown = _on_disk(device, path, scan)
        if shown is not None and shown.name != entry.shadow and not _capture(device, batch, entry, shown):
            too_large.add(path)
    batch.store()
    return too_large


class _Text(NamedTuple):
    """`name` is the BLAKE3 of the bytes."""

    name: bytes
    data: bytes


class _Batch:
    """Captured edits on their way into the database: texts first, then entries and updates in one step."""

    def __init__(self, device: Device) -> None:
        self._device = device
        self._texts: dict[bytes, bytes] = {}
        self._captured: list[tuple[Entry, Lane | FirstEdit, bytes, tuple[bytes, bytes, int] | None]] = []
        self._bytes = 0

    def add(
        self, entry: Entry, shown: _Text, update: bytes | None, want: _Text, lane: Lane | FirstEdit
    ) -> None:
        """`shown`: what the disk holds; `update`: the operations, if any, that lead to the text `want` in the
        lane that they were made in."""
        edit = None if update is None else (update, self._text(want), len(want.data))
        self._captured.append((entry, lane, self._text(shown), edit))
        if self._bytes > BATCH_BYTES:
            self.store()

    def _text(self, text: _Text) -> bytes:
        self._texts[text.name] = text.data
        self._bytes += len(text.data)
        return text.name

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
            device.save_all(entry for entry, *_ in self._captured)
        self._texts, self._captured, self._bytes = {}, [], 0


def _capture(device: Device, batch: _Batch, entry: Entry, shown: _Text) -> bool:
    try:
        if entry.settled:
            lane, update = _edited(device, entry, shown.data)
            batch.add(entry, shown, update, shown, lane)
        else:
            lane, update = _joined(device, entry, shown.data)
            batch.add(entry, shown, update, _Text(lane.digest(), lane.text()), lane)
    except TooLarge:
        return False
    return True


def _edited(device: Device, entry: Entry, data: bytes) -> tuple[Lane | FirstEdit, bytes | None]:
    """The lane, where the disk showed it, with the edit; the update that makes it."""
    if entry.genesis is not None and not entry.touched and not entry.pending:
        name, text = entry.genesis, device.text(entry.genesis)
        first = first_edit(device.branch_id, entry.gen, entry.epoch, text, device.replica, data, name)
        if first is not None:
            return first, first.update
    lane = device.current(entry)
    return lane, lane.edit(device.replica, data)


def _joined(device: Device, entry: Entry, data: bytes) -> tuple[Lane, bytes | None]:
    """The lane, which has moved on from what the disk showed, with the edit of that; the update."""
    assert entry.shadow is not None  # noqa: S101 - checked by the caller
    lane = device.current(entry)
    return lane, onto(device.text(entry.shadow), data, lane.text(), device.replica, lane)


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


def _on_disk(device: Device, path: str, scan: Scan | None) -> _Text | None:
    """The file's bytes; None unless it is a text."""
    seen = scan.find(path) if scan else None
    held = device.objects.held(seen.digest) if seen and seen.kind == "text" else None
    if seen and held is not None:
        return _Text(seen.digest, held)
    data = device.files.read_up_to(path, TEXT_FILE)
    return _Text(digest(data), data) if data is not None and kind_of(data) == "text" else None
