"""Steps that several flows share: updating the record, verifying the newest seal, and finding edits that a
pull would overwrite."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Literal

import msgspec

from localstore.core.encoding import unhex
from localstore.core.errors import SvcError
from localstore.core.model import limits
from localstore.core.model.protection import BranchProtected
from localstore.core.model.ref import NoBranch, Ref
from localstore.core.names import MANIFEST
from localstore.core.paths import terminal_safe
from localstore.core.seal import SealPayload
from localstore.core.storage.chunks import file_cap
from localstore.errors import BranchGone, BranchReplaced
from localstore.folder.scan_result import Scan, Skipped
from localstore.live.stale import Buffers
from localstore.record.database import FrontierRow, SealedFile, SealedTree
from localstore.record.entry import foreign_lane
from localstore.sync import sealed_tree, verify
from localstore.sync.conflicts import author_of
from localstore.sync.interrupted_clone import resume_clone
from localstore.sync.leave_frontier import leave_frontier
from localstore.sync.recognise import adopt_state_file, changes_since_last_seal, repair_state_file
from localstore.sync.reconcile import attach_lanes, follow_epochs
from localstore.sync.remote import connect, unsealed_authors
from localstore.sync.sealing import adopt_unconfirmed_seal
from localstore.sync.settle import recover, write_hidden_edits
from localstore.sync.transfer.send import send
from localstore.sync.withdraw import drop_undone, forget_flights, withdraw
from localstore.sync.working_copy import PART_SEEN, SEALED_AT, WorkingCopy
from svc.flows.executable import mark_interrupted

HIDDEN_NAMED = 20  # hidden paths that a sentence names before it counts the rest


def begin(copy: WorkingCopy) -> str | None:
    """Finish work that was interrupted, and fetch the branch's current state into the record. That state, the
    frontier, has all files with all edits, sealed or not. Returns the id of the branch's newest seal; None if
    the branch has no seal. Raises BranchGone or BranchReplaced, with nothing changed, if the branch was
    deleted."""
    if not copy.live:
        Buffers(lambda path: True).attach_saves(copy)
    recover(copy)
    write_hidden_edits(copy)
    resume_clone(copy)
    mark_interrupted(copy)
    adopt_state_file(copy)
    repair_state_file(copy)
    if copy.key is None or copy.repo.shown_seal:
        return _begin_reading(copy)
    try:
        connected = connect(copy)
    except NoBranch as missing:
        raise missing_branch_error(copy, missing) from None
    attach_lanes(copy)
    follow_epochs(copy, connected.rows)
    adopt_unconfirmed_seal(copy, connected.head)
    return connected.head


def finish_sending(copy: WorkingCopy) -> bool:
    """Handle updates that were sent but not answered: send an update again if the folder still has its
    change, and withdraw it otherwise. Edits that waited to be sent but were undone in the folder are dropped.
    Returns whether there were unanswered updates."""
    drop_undone(copy)
    if not copy.db.flight_kinds():
        return False
    take_back(copy)
    if copy.db.flight_kinds():
        send(copy)
    return True


def moved_back_words(copy: WorkingCopy) -> str:
    """Return a sentence for the user. It says that the branch on the server is older than a state that the
    server had already confirmed."""
    seal = f" since seal {copy.moved_back[:12]}" if copy.moved_back else ""
    return (
        f"{copy.repo.branch} on the server is older than what it had confirmed here, as after the server was "
        f"restored from a backup. What this folder has{seal} counts as edits"
    )


def hidden_words(hidden: Mapping[str, Path | None], dry_run: bool = False) -> str:
    """Return a sentence for the user about files that left the folder, because only writers see their paths
    now. `hidden`: path → trash folder. With `dry_run` the sentence says that they would move."""
    names = ", ".join(terminal_safe(path) for path in sorted(hidden)[:HIDDEN_NAMED])
    names += f" and {len(hidden) - HIDDEN_NAMED} more" if len(hidden) > HIDDEN_NAMED else ""
    folders = sorted({str(folder) for folder in hidden.values() if folder is not None})
    moved = f"; what was here is in {' and '.join(folders)}" if folders else ""
    return f"only writers see {names} now, and you may not write" + (
        "; they would move to the trash" if dry_run else moved
    )


def take_back(copy: WorkingCopy) -> list[str]:
    """Withdraw the updates that were sent but not answered, and whose change is no longer in the folder.
    Returns the paths of those that the relay had already received. The caller must call `begin`
    afterwards."""
    try:
        return sorted(withdraw(copy).arrived)
    except BranchProtected:
        forget_flights(copy)
        return []


def missing_branch_error(copy: WorkingCopy, missing: NoBranch) -> SvcError:
    """Return the error to raise for a branch that does not exist. It is BranchGone, or `missing` itself if
    the folder has never been on the branch."""
    if copy.last_seal is None and not copy.branch_id:
        return missing
    return BranchGone(copy.repo.branch, copy.last_seal, missing.extra["default"])


def _require_same(copy: WorkingCopy, now: Ref) -> None:
    branch_id = copy.branch_id or copy.db.text("read_branch")
    if branch_id and now.id and now.id != branch_id:
        raise BranchReplaced(copy.repo.branch)


def _begin_reading(copy: WorkingCopy) -> str | None:
    """Record the files of the branch's newest seal as the branch's current state. Used for a user who may
    only read, and therefore sees no unsealed edits. If this user could write before, the unsealed edits that
    the folder has count as its own from now on. Returns the id of that seal; None if the branch has no
    seal."""
    try:
        now = copy.transport.ref()
    except NoBranch as missing:
        raise missing_branch_error(copy, missing) from None
    _require_same(copy, now)
    if copy.branch_id:
        leave_frontier(copy)
    head = now.head
    if now.id != copy.db.text("read_branch"):
        with copy.db.step():
            copy.db.put("read_branch", now.id)
    if head is not None and (head != copy.db.text("read_head") or head == copy.db.text(PART_SEEN)):
        payload = verify.head(copy.transport, head, copy.last_seal, copy.repo.repo_id)
        files = copy.read_tree(head, payload)
        with copy.db.step():
            copy.db.put_rows(_rows(files), (), whole=True)
            copy.db.put("read_head", head)
    return head


def _rows(files: dict[str, SealedFile]) -> list[FrontierRow]:
    return [
        FrontierRow(path, file.kind, foreign_lane(file.digest), 0, 0, 0, file.digest, file.size, False)
        for path, file in files.items()
    ]


class NewHead(msgspec.Struct, frozen=True):
    """The differences between a newer, verified seal and the folder's last seal.

    `changes` maps each changed path to its file, or to None if it was removed. If `whole` is True, `changes`
    has all files of the newer seal, not only changed ones. `tree` has the seal's directory objects, or is
    None if they are not known."""

    changes: Mapping[str, SealedFile | None]
    whole: bool
    tree: SealedTree | None


def verified_head(copy: WorkingCopy, head: str | None) -> NewHead | None:
    """Verify every seal after the folder's last one, up to `head`. Returns how the files of `head` differ
    from the last seal; None if the folder is already at `head` and has all that the account sees of it."""
    if head is None:
        return NewHead({}, True, None) if copy.db.read_sealed() or copy.last_seal else None
    seals = verify.chain(copy.transport, head, copy.last_seal, copy.repo.repo_id)
    if not seals:
        return _seen_now(copy, head) if copy.saw_part else None
    handles = {seal.provenance.who.handle for seal in seals if seal.key.id != copy.device_id}
    copy.sealed_by = sorted(terminal_safe(handle) for handle in handles if handle) if copy.last_seal else []
    payload = verify.head(copy.transport, head, copy.last_seal, copy.repo.repo_id)
    copy.db.put(SEALED_AT, payload.created_at)
    return _as_frontier(copy, payload) or NewHead(copy.read_tree(head, payload), True, None)


def _seen_now(copy: WorkingCopy, head: str) -> NewHead | None:
    """Return the files that the account sees now of the folder's last seal `head`, of which it saw a part
    before; None if it sees the same part. Must be called after `begin`."""
    if copy.key is None:
        rows = copy.db.rows().values()
        files = {row.path: SealedFile(row.kind, row.digest, row.size) for row in rows if row.kind != "gone"}
        return None if files == copy.db.read_sealed() else NewHead(files, True, None)
    payload = verify.head(copy.transport, head, copy.last_seal, copy.repo.repo_id)
    return NewHead(copy.read_tree(head, payload), True, None)


def _as_frontier(copy: WorkingCopy, payload: SealPayload) -> NewHead | None:
    """Return the files that a seal changed. They are taken from the state of the branch in the record, which
    has the same files as the seal if there are no unsealed edits. Returns None if these files do not match
    the digest in the seal, or cannot be compared."""
    if copy.last_seal is None or unsealed_authors(copy) or payload.tree_key_id != copy.db.text("tree_key_id"):
        return None
    changes = copy.db.frontier_since_seal()
    if copy.db.count_rows() > limits.TREE_ENTRIES:
        return None
    tree = sealed_tree.tree_after(copy, changes, unhex(payload.content_digest))
    return None if tree is None else NewHead(changes, False, tree)


def changed_since_last_seal(copy: WorkingCopy, scan: Scan) -> list[str]:
    """Return the paths of files that differ from the folder's last seal or were removed. It does not matter
    whether the changes were sent."""
    _, changed, _, removed = changes_since_last_seal(copy, scan)
    recorded = copy.db.unwritable()
    return [*changed, *(path for path in removed if path not in recorded and not scan.unknown(path))]


def edits_in_the_way(copy: WorkingCopy, scan: Scan) -> list[str]:
    """Return the paths, sorted, of files that a pull would overwrite. They are edited files whose edits the
    relay has not confirmed, and new files at paths where the branch has another file."""
    flying = copy.db.flight_kinds()
    paths, new = [], []
    for path in {*copy.db.may_need_update(), *flying}:
        entry, stat = copy.entries.get(path), scan.find(path)
        if scan.unknown(path):
            continue
        if entry is None:
            new.append(path)
        elif entry.pending or path in flying or (stat.digest if stat else None) != entry.shadow:
            paths.append(path)
    rows = copy.db.rows() if new else {}
    for path in new:
        row, stat = rows.get(path), scan.find(path)
        if row is not None and stat is not None and row.digest != stat.digest:
            paths.append(path)
    return sorted(paths)


def unlike_branch(copy: WorkingCopy, scan: Scan, paths: list[str]) -> list[str]:
    """Return those of the paths at which the folder and the branch have different bytes. One of the two may
    have no file there."""
    unlike = []
    for path in paths:
        row, stat = copy.db.row(path), scan.find(path)
        if (row.digest if row else None) != (stat.digest if stat else None):
            unlike.append(path)
    return unlike


def tree_of(copy: WorkingCopy, seal: str | None) -> dict[str, SealedFile]:
    """Return the verified files of a seal by path. If `seal` is None, the folder's last seal is used."""
    if seal is None or seal == copy.last_seal:
        return copy.db.read_sealed()
    payload = verify.seal(copy.transport.seal(seal), seal, copy.repo.repo_id)
    return verify.files(copy.transport, seal, payload)


def update_file_cap(copy: WorkingCopy) -> str | None:
    """Set the largest size that a file may have, which depends on the repository's kind and on `.svc.yaml`.
    Returns the kind that `.svc.yaml` states; None if it states none."""
    if copy.files.stat(MANIFEST) is None:
        copy.file_cap = file_cap(copy.repo_kind)
        return None
    from localstore.core.manifest import parse  # loads a YAML reader

    manifest = parse(copy.files.read(MANIFEST))
    copy.file_cap = manifest.file_cap(copy.repo_kind or manifest.kind or "")
    return manifest.kind


Folder = Literal["", "theirs", "mine"]
"""Which version of a conflict is a directory, while the other is a file."""


class ConflictCopy(msgspec.Struct, frozen=True):
    """A conflict copy: the local version of `path` was moved to the file `kept_as`.

    `lines` and `kept_lines` are the numbers of the conflicting lines in the file and in the copy. `by` is the
    handle of the person who made the other version, if known. `deleted` says that the branch has no file at
    `path`. `folder` says which side has a folder there: `mine`, `theirs`, or "" for neither."""

    path: str
    kept_as: str
    by: str | None = None
    lines: str | None = None
    kept_lines: str | None = None
    deleted: bool = False
    folder: Folder = ""


def conflict_copies(copy: WorkingCopy) -> list[ConflictCopy]:
    """Return the conflict copies that were made in the current run: in this command, or in this round of the
    agent."""
    return [_conflict_copy(copy, path, name) for path, name in copy.conflicts]


def _conflict_copy(copy: WorkingCopy, path: str, name: str) -> ConflictCopy:
    clash = copy.db.conflicts.get(name)
    if clash is None or clash.path != path:  # resolved meanwhile
        return ConflictCopy(path, name, deleted=copy.db.row(path) is None)
    folder: Folder = ""
    if copy.files.is_folder(path):
        folder = "theirs"
    elif copy.files.is_folder(name):
        folder = "mine"
    lines, kept_lines = clash.lines or None, clash.kept_lines or None
    deleted = clash.theirs is None and not copy.exists(path)  # a clone records before it knows the branch
    return ConflictCopy(path, name, clash.by, lines, kept_lines, deleted, folder)


def merged_with(copy: WorkingCopy) -> dict[str, str | None]:
    """Return the paths that were merged without conflict in the current run (this command, or this round of
    the agent). Each is mapped to the handle of the other author, or to None if it is unknown."""
    in_conflict = {path for path, _ in copy.conflicts}
    return {path: author_of(copy, path) for path in sorted(copy.merged - in_conflict)}


def list_unwritable(copy: WorkingCopy) -> list[Skipped]:
    """Return the branch's files that this file system cannot store, with the reasons."""
    return [Skipped(terminal_safe(path), reason) for path, reason in copy.db.unwritable().items()]
