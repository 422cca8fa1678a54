"""`svc pull`: updates the folder with the branch's files. These include edits of others that are not sealed
yet."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import msgspec

from localstore.core.names import MANIFEST
from localstore.errors import BranchReplaced, LocalEdits
from localstore.folder.scan_result import Scan, Skipped
from localstore.sync.capture import capture
from localstore.sync.compose import find_edited
from localstore.sync.dry_run import dry_run_copy
from localstore.sync.hidden import hidden_files
from localstore.sync.reconcile import changed_on_branch, reconcile
from localstore.sync.remote import unsealed_authors
from localstore.sync.renames import follow_renames
from localstore.sync.transfer.chunked_download import clear
from localstore.sync.trash import move_to_trash
from localstore.sync.working_copy import WorkingCopy
from svc.flows.common import (
    ConflictCopy,
    begin,
    changed_since_last_seal,
    conflict_copies,
    edits_in_the_way,
    finish_sending,
    list_unwritable,
    merged_with,
    unlike_branch,
    verified_head,
)
from svc.flows.executable import mark, marking

Mode = Literal["plain", "merge", "force"]


class PullResult(msgspec.Struct):
    """The result of a pull or of its dry run."""

    seal: str | None  # the head that the folder has now; None: the branch has none
    changed: list[str] = msgspec.field(default_factory=list)  # paths that were written, merged or removed
    removed: list[str] = msgspec.field(default_factory=list)  # those of them that are gone
    # path → handles of others with unsealed edits
    live: dict[str, list[str]] = msgspec.field(default_factory=dict)
    # path merged with edits of others → a handle, None if unknown
    merged: dict[str, str | None] = msgspec.field(default_factory=dict)
    # Files in two versions, of which one is a copy
    conflicts: list[ConflictCopy] = msgspec.field(default_factory=list)
    skipped: list[Skipped] = msgspec.field(default_factory=list)  # files that cannot be sent, with the reason
    trash: Path | None = None  # folder of the files of `given_up`
    given_up: list[str] = msgspec.field(default_factory=list)  # edited files that `--force` moved to `trash`
    # Path that only writers see now → trash folder of the file that was here, None in a dry run
    hidden: dict[str, Path | None] = msgspec.field(default_factory=dict)
    dry_run: bool = False  # nothing was written
    replaced: bool = False  # the branch was deleted and made anew, and the folder is on the new one
    # Path deleted here that is back, because others edited it → new file with its former bytes, or None
    returned: dict[str, str | None] = msgspec.field(default_factory=dict)
    # Path that both sides renamed → (new path here, new path of others); both files are there
    renamed_twice: dict[str, tuple[str, str]] = msgspec.field(default_factory=dict)


def pull(copy: WorkingCopy, mode: Mode = "plain", dry_run: bool = False, heard: bool = False) -> PullResult:
    """Pull the branch into the folder. `mode` says what happens to edits that would be overwritten: `plain`
    raises LocalEdits, `merge` merges them, `force` moves them to the trash. With `dry_run`, the result and
    the errors are the same, but nothing changes.

    `heard` says that a watcher reports changed folders, so that only these are scanned."""
    if dry_run:
        with dry_run_copy(copy) as trial:
            result = pull(trial, mode)
        unmoved = dict.fromkeys(result.hidden)
        return msgspec.structs.replace(result, dry_run=True, trash=None, hidden=unmoved)
    head, replaced = _begin(copy, mode)
    if finish_sending(copy):
        head = begin(copy)  # fetch the rows of the updates that were just accepted
    scan = copy.scan(heard=heard)
    if mode == "plain":
        in_the_way = unlike_branch(copy, scan, edits_in_the_way(copy, scan))
        if in_the_way:
            overwritten = changed_on_branch(copy, in_the_way)
            raise LocalEdits(overwritten or in_the_way, beside=not overwritten)
    # before the head's tree, in whose name bytes are fetched
    hidden = hidden_files(copy, scan, copy.db.rows())
    new = verified_head(copy, head)
    given_up = edits_in_the_way(copy, scan) if mode == "force" else []
    trash = discard(copy, given_up)
    if hidden:
        put_away(copy, hidden)
        scan = copy.scan()
    deleted = _deleted_here(copy, scan)  # before files that the branch renamed count as this folder's
    renamed_twice = follow_renames(copy, scan) if mode != "force" else {}
    capture(copy, find_edited(copy, copy.db.may_need_update(), scan), scan)
    with marking(copy, new is not None):
        changed = reconcile(copy, scan)
        clear(copy)
        mark(copy, copy.entries.keys() if MANIFEST in changed else changed)
    if new is not None:
        copy.record_seal(head, new.changes, whole=new.whole, tree=new.tree)
    merged, conflicts = merged_with(copy), conflict_copies(copy)
    changed = sorted({*changed, *hidden, *merged, *(conflict.path for conflict in conflicts)})
    return PullResult(
        seal=head,
        changed=changed,
        removed=[path for path in changed if path not in copy.entries and not copy.files.is_file(path)],
        live=_live_edits(copy),
        merged=merged,
        conflicts=conflicts,
        skipped=scan.skipped + list_unwritable(copy),
        trash=trash,
        given_up=given_up,
        hidden=dict(copy.hidden),
        replaced=replaced,
        returned={path: deleted[path] for path in changed if path in deleted and path in copy.entries},
        renamed_twice=renamed_twice,
    )


def _deleted_here(copy: WorkingCopy, scan: Scan) -> dict[str, str | None]:
    """Return, by path, the files that the user has deleted in the folder. Each is mapped to the path of a new
    file with the same bytes, to which it was probably renamed, or to None if there is none."""
    missing = {
        path: entry.shadow
        for path in copy.db.may_need_update()
        if (entry := copy.entries.get(path)) is not None and entry.shadow is not None
        if scan.find(path) is None and not scan.unknown(path)
    }
    if not missing:
        return {}
    shadows = set(missing.values())
    new = {
        stat.digest: path
        for path, stat in sorted(scan.files.items(), reverse=True)
        if stat.digest in shadows and path not in copy.entries
    }
    return {path: new.get(shadow) for path, shadow in missing.items()}


def _begin(copy: WorkingCopy, mode: Mode) -> tuple[str | None, bool]:
    """Return the id of the branch's newest seal, and whether the folder's branch was deleted and a new branch
    of its name was created. If so, mode `plain` raises BranchReplaced for a folder that differs from its last
    seal."""
    try:
        return begin(copy), False
    except BranchReplaced:
        if mode == "plain" and changed_since_last_seal(copy, copy.scan()):
            raise
        copy.fall_back_to_last_seal()
        return begin(copy), True


def discard(copy: WorkingCopy, given_up: list[str]) -> Path | None:
    """Discard the edits of the files `given_up`. First their entries in the record are deleted, then the
    files are moved to the trash. A crash between the two steps therefore does not look as if the user had
    deleted the files. Returns the trash folder; None if no file existed."""
    with copy.db.step():
        for path in given_up:
            copy.forget(path)
    return move_to_trash(copy, given_up)


def put_away(copy: WorkingCopy, hidden: list[str]) -> None:
    """Move the files `hidden`, which this account does not see any more, to the trash, and note them in
    `WorkingCopy.hidden`."""
    copy.hidden |= dict.fromkeys(hidden, discard(copy, hidden))


def _live_edits(copy: WorkingCopy) -> dict[str, list[str]]:
    sealed = copy.db.read_sealed()
    rows = copy.db.rows()
    paths = {path for path, row in rows.items() if path not in sealed or sealed[path].digest != row.digest}
    who = unsealed_authors(copy)
    return {path: who.get(path, []) for path in sorted(paths) if rows[path].other}
