"""Captures edits: turns a change found on disk into updates of the file's lane (docs/design/004, device rule
2).

An edit is the difference from the shadow, the bytes that were last known to be on the disk. It is not the
difference from the sealed tree, because that would undo newer changes of others."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from localstore.core.encoding import digest
from localstore.core.errors import Invalid, NotFound, ServerMisbehaved, TooLarge
from localstore.core.lane.first_edit import FirstEdit, first_edit
from localstore.core.lane.lane import Lane
from localstore.core.model.limits import MIB, TEXT_FILE
from localstore.core.model.seal import PayloadMissing
from localstore.core.storage.file_kind import kind_of
from localstore.folder.files import BeingWritten
from localstore.folder.scan_result import Scan
from localstore.record.entry import PathRecord
from localstore.sync.conflicts import TextsConflict, record_conflict
from localstore.sync.merging import merge_edit
from localstore.sync.plugin_texts import rebase_on_plugin_text
from localstore.sync.working_copy import WorkingCopy

BATCH_BYTES = 32 * MIB  # of texts that one step stores
LOT = 256  # paths whose texts are read together


def capture(copy: WorkingCopy, paths: Iterable[str], scan: Scan | None = None) -> set[str]:
    """Capture the text edits at `paths` as pending updates. Paths without a text edit are skipped. `scan`: a
    scan that was just made. Its digests are used for files whose bytes are still cached, so that these files
    are not read again.

    Returns the paths whose edit cannot be captured, for one of two reasons. If the edit has too many parts
    for one update, the file is sent as a new version. If the lane has changed and the texts cannot be merged,
    `settle` records the conflict."""
    in_flight = copy.db.flight_kinds()
    uncaptured = set()
    batch = _Batch(copy)
    for path in _read_ahead(copy, list(paths)):
        entry = copy.entries.get(path)
        if entry is None or entry.kind != "text" or not entry.gen or entry.foreign or entry.shadow is None:
            continue
        if in_flight.get(path, "edit_text") != "edit_text":
            continue  # a create or a delete is in flight; its answer comes first
        on_disk = _on_disk(copy, path, scan)
        if on_disk is not None and on_disk.name != entry.shadow and not _capture(copy, batch, entry, on_disk):
            uncaptured.add(path)
    batch.store()
    return uncaptured


def _read_ahead(copy: WorkingCopy, paths: list[str]) -> Iterator[str]:
    """Yields the `paths`. For each LOT paths, it first loads the texts with which their lanes began, in one
    read."""
    for start in range(0, len(paths), LOT):
        lot = paths[start : start + LOT]
        entries = (copy.entries.get(path) for path in lot)
        untouched = (entry for entry in entries if entry is not None and not entry.touched)
        copy.objects.load(entry.genesis for entry in untouched if entry.genesis is not None)
        yield from lot


class _Text(NamedTuple):
    """A text, and its BLAKE3 digest (`name`)."""

    name: bytes
    data: bytes


class _CapturedEdit(NamedTuple):
    """A captured edit. `lane`: the lane with the edit applied. `update`: the encoded update, None if the text
    is unchanged. `want`: the resulting text of the lane."""

    lane: Lane | FirstEdit
    update: bytes | None
    want: _Text


class _Batch:
    """Collects captured edits, so that many are stored in one transaction, with their texts, entries and
    updates."""

    def __init__(self, copy: WorkingCopy) -> None:
        self._copy = copy
        self._texts: dict[bytes, bytes] = {}
        self._captured: list[tuple[PathRecord, bytes, _CapturedEdit]] = []
        self._bytes = 0

    def add(self, entry: PathRecord, on_disk: _Text, edit: _CapturedEdit) -> None:
        """Add an edit. `on_disk`: the current text of the file. If all collected texts exceed BATCH_BYTES,
        they are stored now."""
        self._captured.append((entry, on_disk.name, edit))
        for text in (on_disk, edit.want):
            self._texts[text.name] = text.data
            self._bytes += len(text.data)
        if self._bytes > BATCH_BYTES:
            self.store()

    def store(self) -> None:
        """Write the collected edits to the database, and forget them here."""
        if not self._captured:
            return
        copy = self._copy
        with copy.db.step():
            copy.objects.add(self._texts.items())
            for entry, on_disk, (lane, update, want) in self._captured:
                entry.shadow = on_disk
                if update is not None:
                    entry.want, entry.size = want.name, len(want.data)
                    entry.pending += 1
                    copy.db.add_pending(entry.path, update)
                    copy.edited_lanes.keep(entry, lane)
            copy.save_all(entry for entry, *_ in self._captured)
        self._texts, self._captured, self._bytes = {}, [], 0


def _capture(copy: WorkingCopy, batch: _Batch, entry: PathRecord, on_disk: _Text) -> bool:
    """Add the edit of one path to `batch`. Returns False if it cannot be captured."""
    copy.rebase(entry, on_disk.name, on_disk.data)
    if not entry.settled:
        rebase_on_plugin_text(copy, entry, on_disk.data)
    edit = _capture_settled(copy, entry, on_disk) if entry.settled else _capture_merged(copy, entry, on_disk)
    if edit is not None:
        batch.add(entry, on_disk, edit)
    return edit is not None


def _capture_settled(copy: WorkingCopy, entry: PathRecord, on_disk: _Text) -> _CapturedEdit | None:
    """The edit of a file that had the text of its lane before the change. `on_disk`: its text now. None if
    the edit has too many parts for an update."""
    if entry.genesis is not None and not entry.touched and not entry.pending:
        name, text = entry.genesis, copy.text(entry.genesis)
        first = first_edit(copy.branch_id, entry.gen, entry.epoch, text, copy.replica, on_disk.data, name)
        if first is not None:
            return _CapturedEdit(first, first.update, on_disk)
    lane = copy.lane_with_pending(entry)
    try:
        return _CapturedEdit(lane, lane.edit(copy.replica, on_disk.data), on_disk)
    except TooLarge:
        return None


def _capture_merged(copy: WorkingCopy, entry: PathRecord, on_disk: _Text) -> _CapturedEdit | None:
    """The edit of a file whose text was behind its lane before the user changed it. The edit is merged into
    the newer text of the lane. None if this is not possible, or if a text that it needs is not available."""
    assert entry.shadow is not None  # noqa: S101 - checked by the caller
    before = _base_text(copy, entry.shadow)
    if before is None:
        return None
    try:
        lane = copy.lane_with_pending(entry)
    except (NotFound, PayloadMissing, ServerMisbehaved):
        return None
    try:
        update = merge_edit(copy, entry.path, lane, before, on_disk.data)
    except TextsConflict:
        return None
    return _CapturedEdit(lane, update, _Text(lane.digest(), lane.text()))


def _base_text(copy: WorkingCopy, shadow: bytes) -> bytes | None:
    """The text with the digest `shadow`, from which the edit was made. None if it is not text, or if it can
    be neither read nor fetched."""
    try:
        text = copy.text(shadow)
    except (Invalid, NotFound, ServerMisbehaved):
        return None  # stored as chunks, or missing: no text to merge from
    return text if kind_of(text) == "text" else None


def capture_late_save(copy: WorkingCopy, entry: PathRecord, before: bytes, data: bytes) -> bool:
    """Capture a save that happened while svc wrote a newer text to the file. `before`: the text that the save
    was made from; `data`: the saved text.

    Runs in the caller's transaction. Returns False if the texts conflict; then the conflict is recorded."""
    try:
        add_edit(copy, entry, before, data)
    except TextsConflict as found:
        record_conflict(copy, entry.path, found.texts)
        return False
    return True


def add_edit(copy: WorkingCopy, entry: PathRecord, before: bytes, data: bytes) -> None:
    """Add the change from `before` to `data` to the pending edits of an entry, in the caller's transaction.
    The caller then saves the entry. Raises TextsConflict, with nothing changed."""
    lane = copy.lane_with_pending(entry)
    update = merge_edit(copy, entry.path, lane, before, data)
    if update is not None:
        want = lane.text()
        entry.want, entry.size = digest(want), len(want)
        copy.objects.add([(entry.want, want)])
        copy.db.add_pending(entry.path, update)
        entry.pending += 1


def _on_disk(copy: WorkingCopy, path: str, scan: Scan | None) -> _Text | None:
    """The current text of the file at `path`. None if it is not text, is larger than TEXT_FILE, or is being
    written by a program. Also None if the file is still as svc wrote it (`copy.ours`), because then it has no
    edit."""
    entry, ours = copy.entries.get(path), copy.ours(path)
    if entry is not None and ours is not None and ours.digest == entry.shadow:
        return None
    seen = scan.find(path) if scan else None
    held = copy.objects.get_cached(seen.digest) if seen and seen.kind == "text" else None
    if seen and held is not None:
        return _Text(seen.digest, held)
    try:
        with copy.files.unwritten(path):
            data = copy.files.read_up_to(path, TEXT_FILE)
    except BeingWritten:
        return None  # half of a save
    return _Text(digest(data), data) if data is not None and kind_of(data) == "text" else None
