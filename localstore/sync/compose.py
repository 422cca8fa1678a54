"""Turns local changes into signed updates and puts them in flight, which means that they are ready to be sent
until they are answered. Each path has at most one update in flight."""

from __future__ import annotations

import stat as stat_module
from collections.abc import Collection
from functools import cached_property
from typing import Any, NamedTuple

import msgspec

from localstore.core.diff.text_merge import has_markers
from localstore.core.encoding import b64u
from localstore.core.errors import Unauthorized
from localstore.core.lane.update import LiveUpdate, signing_bytes
from localstore.core.model import limits
from localstore.core.paths import terminal_safe
from localstore.core.storage.chunks import BULK_KINDS, ELSEWHERE, RAISED
from localstore.folder.scan_result import Scan, Skipped
from localstore.folder.stat_cache import Stat
from localstore.record.entry import PathRecord
from localstore.record.typed import is_typed
from localstore.sync.capture import capture
from localstore.sync.held_back import held_back, to_skipped
from localstore.sync.uncarried import Uncarried
from localstore.sync.working_copy import WorkingCopy

OPS_BYTES = limits.UPDATE_BATCH_BYTES * 3 // 4 - 64 * limits.KIB  # raw operations that fit one batch


class Composed(msgspec.Struct):
    """What `compose` did. `written`, `removed`: paths whose update was put in flight. `skipped`: files over a
    size cap, and `left_out` their paths. `marked`: files that still contain conflict markers written by
    svc. `kept`: for each entry that svc cannot send, the files that stay on the branch because of it."""

    written: list[str] = msgspec.field(default_factory=list)
    removed: list[str] = msgspec.field(default_factory=list)
    skipped: list[Skipped] = msgspec.field(default_factory=list)
    left_out: list[str] = msgspec.field(default_factory=list)
    marked: list[str] = msgspec.field(default_factory=list)
    kept: dict[str, list[str]] = msgspec.field(default_factory=dict)


class _PathUpdate(NamedTuple):
    """A path that needs an update. `entry`: its record, None for a new path. `stat`: its file, None if the
    file is gone. `members`: what its `LiveUpdate` has besides the path, namely the kind of the update and the
    fields that this kind needs."""

    path: str
    entry: PathRecord | None
    stat: Stat | None
    members: dict[str, Any]


def compose(
    copy: WorkingCopy,
    scan: Scan,
    delete: bool = True,
    barred: Collection[str] = (),
    whole: Collection[str] = (),
    typed: Collection[str] = (),
    store: bool = True,
    only: Collection[str] | None = None,
) -> Composed:
    """Capture all edits, and put one update in flight for each changed path that has none in flight. An
    update in flight is ready to be sent until it is answered. Returns what was done.

    - `scan`: the files of the folder, just scanned.
    - `delete`: also send removals.
    - `barred`: paths to leave out, because the relay refused them in this run.
    - `whole`: paths to send as a new version, because the relay refuses their edits.
    - `typed`: paths whose edits were typed character by character, so that the relay accepts them whatever
      others changed.
    - `store`: put the updates in flight; without it they are only composed.
    - `only`: the paths to consider, None for all paths."""
    composed = Composed()
    moved = copy.db.may_need_update() if only is None else sorted(only)
    too_large = capture(copy, find_edited(copy, moved, scan), scan)
    caps, marks = SizeCaps(copy, scan, only), MarkerCheck(copy)
    in_flight = copy.db.flight_kinds()
    uncarried = Uncarried(copy, scan, caps.over)
    held = (
        {}
        if copy.sends_git_ignored
        else {held_file.path: held_file for held_file in held_back(copy, scan, moved)}
    )
    composed.skipped += map(to_skipped, held.values())
    departing: list[_PathUpdate] = []
    with copy.db.step():
        for path in moved:
            if path in in_flight or path in barred or path in held:
                continue
            stat = scan.find(path)
            entry = copy.entries.get(path)
            if scan.unknown(path):
                if stat is None and entry is not None and entry.gen and entry.shadow is not None:
                    composed.kept.setdefault(scan.hiding(path) or path, []).append(path)
                continue
            members = _members(copy, entry, stat, delete, path in too_large or path in whole)
            if members is None:
                continue
            if stat is not None and marks.remain_in(stat, members["kind"]):
                composed.marked.append(path)
                uncarried.leave_out(path, stat.digest, entry is None)
                continue
            if members["kind"] == "edit_text" and (path in typed or (entry and is_typed(copy.db, entry))):
                members["typed"] = True
            if stat is not None and members["kind"] == "set_blob":
                over = caps.over(path, stat)
                if over is not None:
                    composed.skipped.append(over)
                    composed.left_out.append(path)
                    uncarried.leave_out(path, stat.digest, entry is None)
                    continue
            departing.append(_PathUpdate(path, entry, stat, members))
        departing = [update for update in departing if not _is_kept(composed, uncarried, update)]
        for update in departing:
            (composed.removed if update.members["kind"] == "delete" else composed.written).append(update.path)
        if store and departing:
            _put_in_flight(copy, departing)
    return composed


def _is_kept(composed: Composed, uncarried: Uncarried, update: _PathUpdate) -> bool:
    """Whether the update would remove a file that must stay on the branch, because something that svc cannot
    send has replaced it here. If so, the file is added to `composed.kept`."""
    if update.members["kind"] != "delete" or update.entry is None:
        return False
    cause = uncarried.cause(update.path, update.entry.shadow, update.entry.size)
    if cause is not None:
        composed.kept.setdefault(cause, []).append(update.path)
    return cause is not None


def find_edited(copy: WorkingCopy, moved: list[str], scan: Scan) -> list[str]:
    """Those of the paths `moved` at which the file on the disk differs from the shadow, the bytes that were
    last known to be there."""
    copy.entries.load(moved)
    return [path for path in moved if _differs(copy.entries.get(path), scan.find(path))]


def _differs(entry: PathRecord | None, stat: Stat | None) -> bool:
    return entry is not None and stat is not None and entry.shadow != stat.digest


def _members(
    copy: WorkingCopy, entry: PathRecord | None, stat: Stat | None, delete: bool, whole: bool
) -> dict[str, Any] | None:
    """Kind and content of the update that a path needs. None if it needs no update, or if the update cannot
    be sent yet. `stat`: the file on the disk, None if there is none. `delete`: send a missing file as a
    removal. `whole`: send all bytes of an edited text, as for a new file, instead of the edit."""
    if entry is None:
        return _bytes_members(stat) if stat is not None else None
    if not entry.settled:
        return (
            None  # the disk does not show the text that the update would replace: pull first (device rule 6)
        )
    if stat is None:
        gone = delete and entry.gen and entry.shadow is not None and _no_file(copy, entry.path)
        return {"kind": "delete"} if gone else None
    if entry.kind == "text" and stat.kind == "text" and entry.gen and not whole:
        return _edit_members(copy, entry)  # a save after the scan is captured by the next command
    if stat.digest != entry.shadow or entry.pending:
        return _bytes_members(stat)
    return None


def _no_file(copy: WorkingCopy, path: str) -> bool:
    info = copy.files.stat(path)
    return info is None or stat_module.S_ISDIR(info.st_mode)


def _bytes_members(stat: Stat) -> dict[str, Any]:
    kind = "create_text" if stat.kind == "text" else "set_blob"
    return {"kind": kind, "blake3": stat.digest.hex(), "size": stat.size}


def _edit_members(copy: WorkingCopy, entry: PathRecord) -> dict[str, Any] | None:
    if not entry.pending:
        return None
    ops: list[str] = []
    room = OPS_BYTES
    for update in copy.db.pending(entry.path)[: limits.EDITS_AT_ONCE]:
        room -= len(update)
        if room < 0:
            break
        ops.append(b64u(update))
    if ops:
        return {"kind": "edit_text", "epoch": entry.epoch, "ops": ops}
    assert entry.want is not None  # noqa: S101 - it has pending updates
    return {"kind": "create_text", "blake3": entry.want.hex(), "size": entry.size}


def _put_in_flight(copy: WorkingCopy, departing: list[_PathUpdate]) -> None:
    """Number and sign these updates in the given order, and store them as in flight. Raises Unauthorized
    without a device key."""
    if copy.key is None:
        raise Unauthorized("sending needs a device key; run: svc login")
    last, lowest = copy.db.number("n"), copy.db.lowest_flight()
    settled = last if lowest is None else lowest - 1
    branch_id, replica = copy.branch_id, copy.replica
    new_records: list[PathRecord] = []
    flights: list[tuple[int, str, str, bytes]] = []
    for n, (path, recorded, stat, members) in enumerate(departing, last + 1):
        entry = recorded
        if entry is None:
            assert stat is not None  # noqa: S101 - an unknown path without a file has no update
            entry = PathRecord(
                path=path, kind=stat.kind, shadow=stat.digest, want=stat.digest, size=stat.size
            )
            new_records.append(entry)
        update = LiveUpdate(
            n=n, settled=settled, path=path, gen=entry.gen, base=entry.seen, signature="", **members
        )
        signed = signing_bytes(copy.repo.repo_id, branch_id, replica, copy.key.id, update)
        update = msgspec.structs.replace(update, signature=b64u(copy.key.sign(signed)))
        flights.append((n, path, update.kind, msgspec.json.encode(update)))
    copy.save_all(new_records)
    copy.db.put_flights(flights)
    copy.db.put("n", last + len(departing))


class MarkerCheck:
    """Finds texts that still contain conflict markers written by svc. Edited texts are always checked, as
    they are in memory. New files are read and checked only while a conflict is unresolved."""

    def __init__(self, copy: WorkingCopy) -> None:
        self._copy = copy

    @cached_property
    def _is_unresolved(self) -> bool:
        return bool(self._copy.db.conflicts.list())

    def remain_in(self, stat: Stat, kind: str) -> bool:
        """Whether the file contains conflict markers written by svc. `kind`: the kind of the update that
        would send the file."""
        text = None
        if kind == "edit_text":
            text = self._copy.objects.get(stat.digest)
        elif kind == "create_text" and self._is_unresolved:
            text = self._copy.files.read_up_to(stat.path, limits.TEXT_FILE)
        return text is not None and has_markers(text)


class SizeCaps:
    """Checks files that are not text against two size caps (docs/design/006): one for each file, and one for
    their sum. `only`: the paths that were scanned after a save, so that the cost does not grow with the
    folder; None after a scan of the whole folder."""

    def __init__(self, copy: WorkingCopy, scan: Scan, only: Collection[str] | None = None) -> None:
        self._copy = copy
        self._scan = scan
        self._only = only

    @cached_property
    def _sizes(self) -> dict[str, int]:
        """The size on the branch after this push, by path, of each file that is not text. For a save, the
        result has only paths that differ from the branch."""
        if self._only is not None:
            return self._flying() | dict.fromkeys(filter(self._is_gone, self._only), 0)
        sizes = self._copy.db.byte_files.sizes()
        for path, entry in self._copy.entries.items():
            if entry.kind != "text":  # what this push sent already is not a row of the branch here yet
                sizes[path] = entry.size
            if path not in self._scan.files and not self._scan.unknown(path):
                sizes.pop(path, None)
        return sizes

    def _flying(self) -> dict[str, int]:
        """The size that each path with an update in flight will have on the branch once the update is
        accepted. The size is 0 if the path will be a text or will be removed."""
        updates = [msgspec.json.decode(body, type=LiveUpdate) for _, body in self._copy.db.flights()]
        return {update.path: update.size or 0 if update.kind == "set_blob" else 0 for update in updates}

    def _is_gone(self, path: str) -> bool:
        return self._scan.find(path) is None and not self._scan.unknown(path)

    @cached_property
    def _total(self) -> int:
        total = sum(self._sizes.values())
        if self._only is not None:
            stored = self._copy.db.byte_files
            total += stored.total() - sum(stored.sizes_at(self._sizes).values())
        return total

    def _size_at(self, path: str) -> int:
        """How many bytes this path contributes to the sum of the sizes of files that are not text."""
        if path not in self._sizes and self._only is not None:
            return self._copy.db.byte_files.sizes_at([path]).get(path, 0)
        return self._sizes.get(path, 0)

    def over(self, path: str, stat: Stat) -> Skipped | None:
        """Check a file against the size caps. Returns it as a skipped entry if it exceeds a cap. Otherwise
        returns None, and adds its size to the sum for the files that are checked next."""
        kind, cap = self._copy.repo_kind, self._copy.file_cap
        if stat.size > cap:
            raisable = kind == "app" and stat.size <= limits.APP_FILE_CLAMP
            remedy = RAISED if raisable else "" if kind in BULK_KINDS else ELSEWHERE
            if cap < limits.TEXT_FILE < stat.size:  # a text of this size is bytes, with their cap
                remedy = f"{remedy}; a text may have {limits.in_words(limits.TEXT_FILE)}"
            return Skipped(terminal_safe(path), "over the size cap of a file", stat.size, cap, remedy)
        if kind in BULK_KINDS:
            return None
        total = self._total - self._size_at(path) + stat.size
        if total > limits.BLOB_TREE:
            return Skipped(terminal_safe(path), "over the size cap of a tree", stat.size, limits.BLOB_TREE)
        self._total, self._sizes[path] = total, stat.size
        return None
