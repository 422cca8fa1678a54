"""A save made outside becomes lane operations (device rule 2).

The difference is always taken from the shadow, the bytes this device last knew on the disk, never from the
sealed tree: what others wrote since is not ours to undo.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from localstore.core.encoding import digest
from localstore.core.errors import Invalid, NotFound, ServerMisbehaved, TooLarge
from localstore.core.lane.first_edit import FirstEdit, first_edit
from localstore.core.lane.lane import Lane
from localstore.core.limits import MIB, TEXT_FILE
from localstore.core.model.seal import PayloadMissing
from localstore.core.storage.file_kind import kind_of
from localstore.folder.scan_result import Scan
from localstore.record.entry import PathRecord
from localstore.sync.conflicts import TextsConflict, record_conflict
from localstore.sync.merging import merge_edit
from localstore.sync.working_copy import WorkingCopy

BATCH_BYTES = 32 * MIB  # of texts that one step stores
LOT = 256  # paths whose texts are read together


def capture(copy: WorkingCopy, found: Iterable[str], scan: Scan | None = None) -> set[str]:
    """Capture the text edits at these paths, which may be any. Returns those whose edit cannot be: it has too
    many parts for an update, and is sent as a new version, or the lane has moved on and the two cannot be
    merged, which `settle` sees to. `scan`: a look at the folder just now, whose word is taken
    where it still holds the bytes."""
    in_flight = copy.db.flight_kinds()
    left = set()
    batch = _Batch(copy)
    for path in _read_ahead(copy, list(found)):
        entry = copy.entries.get(path)
        if entry is None or entry.kind != "text" or not entry.gen or entry.foreign or entry.shadow is None:
            continue
        if in_flight.get(path, "edit_text") != "edit_text":
            continue  # a create or a delete is under way: what it replaces is settled first
        shown = _on_disk(copy, path, scan)
        if shown is not None and shown.name != entry.shadow and not _capture(copy, batch, entry, shown):
            left.add(path)
    batch.store()
    return left


def _read_ahead(copy: WorkingCopy, found: list[str]) -> Iterator[str]:
    """The paths again, each lot after what its edits start from was read together."""
    for start in range(0, len(found), LOT):
        lot = found[start : start + LOT]
        known = (copy.entries.get(path) for path in lot)
        untouched = (entry for entry in known if entry is not None and not entry.touched)
        copy.objects.load(entry.genesis for entry in untouched if entry.genesis is not None)
        yield from lot


class _Text(NamedTuple):
    """`name` is the BLAKE3 of the bytes."""

    name: bytes
    data: bytes


class _CapturedEdit(NamedTuple):
    """A lane with an edit in it: the update that makes it, None if nothing changes, and the text then."""

    lane: Lane | FirstEdit
    update: bytes | None
    want: _Text


class _Batch:
    """Captured edits on their way into the database: texts, entries and updates in one step."""

    def __init__(self, copy: WorkingCopy) -> None:
        self._copy = copy
        self._texts: dict[bytes, bytes] = {}
        self._captured: list[tuple[PathRecord, bytes, _CapturedEdit]] = []
        self._bytes = 0

    def add(self, entry: PathRecord, shown: _Text, made: _CapturedEdit) -> None:
        """`shown`: what the disk holds."""
        self._captured.append((entry, shown.name, made))
        for text in (shown, made.want):
            self._texts[text.name] = text.data
            self._bytes += len(text.data)
        if self._bytes > BATCH_BYTES:
            self.store()

    def store(self) -> None:
        if not self._captured:
            return
        copy = self._copy
        with copy.db.step():
            copy.objects.add(self._texts.items())
            for entry, shown, (lane, update, want) in self._captured:
                entry.shadow = shown
                if update is not None:
                    entry.want, entry.size = want.name, len(want.data)
                    entry.pending += 1
                    copy.db.add_pending(entry.path, update)
                    copy.edited_lanes.keep(entry, lane)
            copy.save_all(entry for entry, *_ in self._captured)
        self._texts, self._captured, self._bytes = {}, [], 0


def _capture(copy: WorkingCopy, batch: _Batch, entry: PathRecord, shown: _Text) -> bool:
    made = _plain_edit(copy, entry, shown) if entry.settled else _merged_edit(copy, entry, shown)
    if made is not None:
        batch.add(entry, shown, made)
    return made is not None


def _plain_edit(copy: WorkingCopy, entry: PathRecord, shown: _Text) -> _CapturedEdit | None:
    """An edit of a lane that the disk showed; None if it has too many parts."""
    if entry.genesis is not None and not entry.touched and not entry.pending:
        name, text = entry.genesis, copy.text(entry.genesis)
        first = first_edit(copy.branch_id, entry.gen, entry.epoch, text, copy.replica, shown.data, name)
        if first is not None:
            return _CapturedEdit(first, first.update, shown)
    lane = copy.lane_with_pending(entry)
    try:
        return _CapturedEdit(lane, lane.edit(copy.replica, shown.data), shown)
    except TooLarge:
        return None


def _merged_edit(copy: WorkingCopy, entry: PathRecord, shown: _Text) -> _CapturedEdit | None:
    """An edit of what the disk showed of a lane that has moved on; None if the two cannot be merged, or the
    relay has not the text that it said the lane began with."""
    assert entry.shadow is not None  # noqa: S101 - checked by the caller
    before = _base_text(copy, entry.shadow)
    if before is None:
        return None
    try:
        lane = copy.lane_with_pending(entry)
    except (NotFound, PayloadMissing, ServerMisbehaved):
        return None
    try:
        update = merge_edit(copy, entry.path, lane, before, shown.data)
    except TextsConflict:
        return None
    return _CapturedEdit(lane, update, _Text(lane.digest(), lane.text()))


def _base_text(copy: WorkingCopy, shadow: bytes) -> bytes | None:
    """The text that an edit was made from; None where the path held no text: another branch's binary."""
    try:
        text = copy.text(shadow)
    except (Invalid, NotFound, ServerMisbehaved):
        return None  # kept in chunks, or not to be had: nothing to join the edit by
    return text if kind_of(text) == "text" else None


def capture_late_save(copy: WorkingCopy, entry: PathRecord, before: bytes, data: bytes) -> bool:
    """Take in a save that slipped into an exchange: `data`, made from `before`, while the lane has moved on.

    Part of the caller's step. False if the two cannot be merged: the clash is recorded.
    """
    lane = copy.lane_with_pending(entry)
    try:
        update = merge_edit(copy, entry.path, lane, before, data)
    except TextsConflict as found:
        record_conflict(copy, entry.path, found.texts)
        return False
    if update is not None:
        want = lane.text()
        entry.want, entry.size = digest(want), len(want)
        copy.objects.add([(entry.want, want)])
        copy.db.add_pending(entry.path, update)
        entry.pending += 1
    return True


def _on_disk(copy: WorkingCopy, path: str, scan: Scan | None) -> _Text | None:
    """The file's bytes; None unless it is a text."""
    seen = scan.find(path) if scan else None
    held = copy.objects.cached(seen.digest) if seen and seen.kind == "text" else None
    if seen and held is not None:
        return _Text(seen.digest, held)
    data = copy.files.read_up_to(path, TEXT_FILE)
    return _Text(digest(data), data) if data is not None and kind_of(data) == "text" else None
