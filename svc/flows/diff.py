"""`svc diff`: compares the files of the folder with its last seal, or with another seal."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Literal, NamedTuple

from localstore.core.diff import line_diff as diffs
from localstore.core.diff import renames
from localstore.core.diff.renames import File, Rename
from localstore.core.errors import NotFound
from localstore.core.model.history import ChangedFile
from localstore.core.model.limits import DIFF_BYTES, TEXT_FILE
from localstore.core.pathspec import matching, without_match
from localstore.folder.scan_result import Scan
from localstore.folder.stat_cache import Stat
from localstore.record.database import SealedFile
from localstore.sync.recognise import adopt_state_file
from localstore.sync.working_copy import WorkingCopy
from svc.flows.common import tree_of
from svc.flows.unsendable import find_unsendable

Status = Literal["added", "removed", "modified", "renamed"]


class _Change(NamedTuple):
    """A changed file. `was` is its version in the seal, or None if it is new. `now` is its stat on the disk,
    or None if it was removed. `source` is the file that it was renamed from, if any."""

    path: str
    was: SealedFile | None
    now: Stat | None
    source: Rename | None = None


def diff(
    copy: WorkingCopy, paths: Sequence[str] = (), seal: str | None = None, space: bool = True
) -> Iterator[ChangedFile]:
    """Yields each file that differs from `seal`, with its patch if it is text. If `seal` is None, the
    folder's last seal is used. If `paths` are given, only files at or below them are compared. `space` is
    False to ignore differences in white space. Files that a push would not send are left out.

    Works offline for texts in the record. Raises NotFound for a path that is neither in the folder nor in the
    seal."""
    adopt_state_file(copy)
    scan = copy.scan()
    sealed = tree_of(copy, seal)
    all_paths = sorted({*scan.files, *sealed})
    for missing in without_match(all_paths, paths):
        raise NotFound(f"{missing} is neither in this folder nor in its last seal; see: svc status")
    changed: dict[str, _Change] = {}
    for path in all_paths:
        if scan.unknown(path) or (paths and not matching(path, paths)):
            continue
        was, now = sealed.get(path), scan.files.get(path)
        if (was.digest if was else None) != (now.digest if now else None):
            changed[path] = _Change(path, was, now)
    for path in _unsent_paths(copy, scan, changed):
        del changed[path]
    for change in _with_moves(copy, changed):
        file = _to_changed_file(copy, change, space)
        if file is None:
            continue
        if space or file.status != "modified" or file.patch != "":
            yield file


def _unsent_paths(copy: WorkingCopy, scan: Scan, changed: Mapping[str, _Change]) -> set[str]:
    """Return the changed paths that a push would not send. `svc status` lists them as skipped."""
    new = [path for path, change in changed.items() if change.was is None]
    removed = [path for path, change in changed.items() if change.now is None]
    excluded = find_unsendable(copy, scan, changed.keys() - {*new, *removed}, new, removed)
    return excluded.paths | (copy.db.unwritable().keys() & {*removed})


def _with_moves(copy: WorkingCopy, changed: Mapping[str, _Change]) -> Iterator[_Change]:
    """Yields the changes. If a file was moved, its removal and its addition are joined into one rename."""
    removed = {path: _file(change.was) for path, change in changed.items() if change.was and not change.now}
    added = {path: _file(change.now) for path, change in changed.items() if change.now and not change.was}
    moves = renames.exact(removed, added)
    candidates = renames.candidates(removed, added, moves)

    def old(path: str) -> bytes:
        return copy.text(candidates.removed[path].digest)

    def new(path: str) -> bytes:
        return copy.files.read_up_to(path, TEXT_FILE) or b""  # it may be gone since the scan

    moves += renames.similar(candidates, old, new)
    to, away = {move.new: move for move in moves}, {move.old for move in moves}
    for path, change in changed.items():
        if path in to:
            yield change._replace(was=changed[to[path].old].was, source=to[path])
        elif path not in away:
            yield change


def _file(side: SealedFile | Stat) -> File:
    return File(side.digest, side.size, side.kind == "text")


def _to_changed_file(copy: WorkingCopy, change: _Change, space: bool) -> ChangedFile | None:
    """Compare both sides of a change. None if it is over: a new file that is gone since the scan."""
    path, was, now, source = change
    status: Status = (
        "renamed" if source else "added" if was is None else "removed" if now is None else "modified"
    )
    before = source.old if source else path
    old_path, similarity = (source.old, source.similarity) if source else (None, None)
    sides = [side for side in (was, now) if side is not None]
    if any(side.kind != "text" or side.size > DIFF_BYTES for side in sides):
        binary = any(side.kind != "text" for side in sides)
        return ChangedFile(
            path=path, status=status, binary=binary, additions=0, deletions=0, patch=None,
            old_path=old_path, similarity=similarity,
        )  # fmt: skip
    old = copy.text(was.digest) if was else None
    new = copy.files.read_up_to(path, TEXT_FILE) if now else None
    if now and new is None:  # gone since the scan
        gone = _Change(before, was, None)
        return _to_changed_file(copy, gone, space) if was else None
    added, deleted = diffs.stat(old, new, space)
    names = before if was else None, path if now else None
    patch = diffs.unified_diff(old, new, *names, similarity=similarity, space=space)
    return ChangedFile(
        path=path, status=status, binary=False, additions=added, deletions=deleted,
        patch=patch.decode("utf-8", "replace"), old_path=old_path, similarity=similarity,
    )  # fmt: skip
