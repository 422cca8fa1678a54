"""`svc push`: sends every change of the folder to the branch, then seals the branch."""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Callable, Collection

import msgspec

from localstore.core.errors import Conflict
from localstore.core.model.protection import BranchProtected
from localstore.core.model.ref import StaleHead
from localstore.core.paths import terminal_safe
from localstore.core.removals import removes_most
from localstore.errors import EditsConflict, FolderShowsSeal, NotSealed, UnpulledSeal
from localstore.folder.scan_result import Skipped
from localstore.sync.compose import Composed, compose
from localstore.sync.dry_run import DryRunCopy, dry_run_copy
from localstore.sync.open_merge import keep, sources_to_seal
from localstore.sync.reconcile import changed_on_branch
from localstore.sync.removals import lost_among, missing_files
from localstore.sync.sealing import seal
from localstore.sync.transfer.send import SendResult, send
from localstore.sync.uncarried import with_kept
from localstore.sync.withdraw import drop_refused, drop_undone, withdraw
from localstore.sync.working_copy import WorkingCopy
from svc.flows.common import ConflictCopy, begin, conflict_copies, merged_with, update_file_cap
from svc.flows.executable import find_unlisted
from svc.flows.ignored_files import (
    IgnoredFile,
    find_ignored,
    index_warnings,
    newly_tracked_by_git,
    syncthing_warnings,
    tracked_by_git,
    warn_unportable,
)
from svc.flows.lfs import pointers
from svc.flows.merge.resolve import unresolved_copies

PULLS = 3  # how often a push pulls and sends again after others' edits came first
PAUSE = 0.1  # seconds at most before the second try; twice as many before each further one
MARKED = "it still holds conflict markers; run: svc resolve, or take them out, then push again"
UNREAD = "its bytes did not arrive, as when a program writes it all the time; push again when none does"


class PushResult(msgspec.Struct):
    """The result of a push or of its dry run."""

    seal: str | None = None  # the new one; None: there was nothing to seal
    head: str | None = None  # the last seal of the branch after the push
    sent: list[str] = msgspec.field(default_factory=list)  # paths whose content was sent
    removed: list[str] = msgspec.field(default_factory=list)  # paths whose removal was sent
    skipped: list[Skipped] = msgspec.field(default_factory=list)  # files that cannot be sent, with the reason
    refused: dict[str, str] = msgspec.field(default_factory=dict)  # path → the relay's reason
    # Files in two versions, of which one is a copy
    conflicts: list[ConflictCopy] = msgspec.field(default_factory=list)
    # path merged with others' edits → a handle, None if unknown
    merged: dict[str, str | None] = msgspec.field(default_factory=dict)
    # path → handles of others whose live edits are in the seal
    live_by: dict[str, list[str]] = msgspec.field(default_factory=dict)
    lacking: list[str] = msgspec.field(default_factory=list)  # paths of `live_by` that the folder lacks
    # Paths that the seal changes, without those that others alone edited
    sealed: list[str] = msgspec.field(default_factory=list)
    # Paths that the seal removes, without those that others alone edited
    unmade: list[str] = msgspec.field(default_factory=list)
    # If nothing was sealed: paths where the branch has changes by others that the folder lacks
    behind: list[str] = msgspec.field(default_factory=list)
    unlike: bool = False  # if nothing was sealed: the folder has other files than the branch, such as skipped
    bytes: int = 0  # that were uploaded
    size: int = 0  # of the files, for which `bytes` were uploaded
    kind: str | None = None  # of `.svc.yaml`, on a first push
    dry_run: bool = False  # nothing was sent
    where: str = ""  # of a dry run: repository and branch
    unsealed: bool = False  # of a dry run: there is something to seal
    warnings: list[str] = msgspec.field(default_factory=list)  # about names that some systems cannot hold
    tracked: list[IgnoredFile] = msgspec.field(default_factory=list)  # ignored files that git tracks
    ignored: list[IgnoredFile] = msgspec.field(default_factory=list)  # of a dry run: all ignored files
    executable: list[str] = msgspec.field(default_factory=list)  # new files whose executable bit is lost
    # Of a first push: built-in rule → how many files and folders it left out
    built_in: dict[str, int] = msgspec.field(default_factory=dict)
    # Sent copy of an unresolved conflict → the path it conflicts with
    unresolved: dict[str, str] = msgspec.field(default_factory=dict)
    merges: list[str] = msgspec.field(default_factory=list)  # seals that the seal names as merged


Agreed = Callable[[int, int], None]
"""Called before most of a branch is removed: how many files, of how many. An exception ends the push."""


def push(
    copy: WorkingCopy,
    message: str,
    no_delete: bool = False,
    dry_run: bool = False,
    agreed: Agreed = lambda removed, tree: None,
) -> PushResult:
    """Send every change of the folder, and seal the branch with `message`. Before many files are removed,
    `agreed` is called. With `dry_run`, the result is computed and the same errors are raised, but nothing is
    sent or sealed, and `agreed` is not called.

    Raises UnpulledSeal, before anything is sent, if the branch has a seal that this folder lacks. Raises
    Conflict if others keep changing the same files, and NotSealed if another seal came first. Raises
    EditsConflict if an edit cannot be merged; both versions are then in the folder."""
    if copy.repo.shown_seal:
        raise FolderShowsSeal(copy.repo.shown_seal, copy.repo.branch)
    if dry_run:
        with dry_run_copy(copy) as trial:
            result = _send_changes(trial, no_delete)
            result.unsealed = bool(result.merges) or _is_unsealed(trial)
            if not result.unsealed:
                _note_unlike(trial, result)
        result.dry_run, result.bytes, result.head = True, 0, copy.last_seal
        result.where = f"{copy.repo.repo}, branch {copy.repo.branch}"
        result.tracked, result.ignored = tracked_by_git(copy), list(find_ignored(copy))
        return result
    earlier = copy.db.flight_numbers()
    try:
        result = _send_changes(copy, no_delete, agreed)
    except BranchProtected:
        drop_refused(copy, earlier)  # of the earlier ones it is not known whether they arrived
        raise
    result.tracked = newly_tracked_by_git(copy)
    try:
        sealed = seal(copy, message, merged=result.merges)
    except StaleHead:
        raise NotSealed(copy.repo.branch) from None
    if result.merges:
        keep(copy, None)
    if sealed.seal is None:
        _note_unlike(copy, result)
    result.head = sealed.seal or copy.last_seal
    result.seal, result.live_by, result.lacking = sealed.seal, sealed.live_by, sealed.lacking
    ours = {*sealed.changed} - (sealed.live_by.keys() - {*result.sent, *result.removed})
    result.sealed, result.unmade = sorted(ours - {*sealed.removed}), sorted(ours & {*sealed.removed})
    return result


def _send_changes(
    copy: WorkingCopy, no_delete: bool, agreed: Agreed = lambda removed, tree: None
) -> PushResult:
    """Do all steps of a push except the seal. Raises UnpulledSeal if the branch has a seal that the folder
    lacks."""
    head = begin(copy)
    if head != copy.last_seal or copy.lacks_part:
        raise UnpulledSeal(copy.repo.branch, head)
    _require_merged(copy)
    withdraw(copy)
    drop_undone(copy)
    merges = sources_to_seal(copy)
    kind = update_file_cap(copy)
    if not no_delete:
        _ask_about_removals(copy, agreed)
    result = PushResult(kind=kind if head is None else None, merges=merges)
    _send_all(copy, result, not no_delete)
    result.sent = [path for path in result.sent if path in copy.entries]  # others may have removed some again
    sealed = copy.db.sealed_among(result.sent)
    new = [path for path in result.sent if path not in sealed]
    result.warnings = warn_unportable(copy, new, copy.entries) + index_warnings(copy)
    result.warnings += syncthing_warnings(copy, "push")
    result.warnings += pointers(copy, {path: copy.entries[path].size for path in result.sent})
    result.executable = find_unlisted(copy, new)
    if head is None:
        result.built_in = Counter(item.rule for item in find_ignored(copy) if item.built_in)
    result.conflicts, result.merged = conflict_copies(copy), merged_with(copy)
    result.unresolved = unresolved_copies(copy, result.sent)
    return result


def _ask_about_removals(copy: WorkingCopy, agreed: Agreed) -> None:
    """Call `agreed`, which may raise, if the push would remove most files of the branch. Done before anything
    is sent."""
    tree = copy.db.count_rows()
    if not removes_most(tree, tree):
        return
    scan = copy.scan()
    missing = missing_files(copy, scan, copy.db.may_need_update())
    if not removes_most(len(missing), tree):
        return
    removed = compose(copy, scan, store=False).removed
    lost = lost_among(copy, scan, removed)
    if removes_most(lost, tree):
        agreed(lost, tree)


def _note_unlike(copy: WorkingCopy, result: PushResult) -> None:
    """Note in the result how the folder differs from the branch, although there is nothing to seal."""
    different = copy.db.may_need_update()
    result.behind = sorted(changed_on_branch(copy, different))
    result.unlike = bool(result.skipped or result.refused or different)


def _is_unsealed(copy: DryRunCopy) -> bool:
    """Return whether this push leads to a new seal. It does if the branch would then differ from its last
    seal."""
    sealed = {path: (file.kind, file.digest) for path, file in copy.db.read_sealed().items()}
    return copy.last_seal is None or copy.frontier() != sealed


def _send_all(copy: WorkingCopy, result: PushResult, delete: bool) -> None:
    moved: Counter[str] = Counter()
    for attempt in range(PULLS + 1):
        typed = {path for path, times in moved.items() if times >= PULLS}
        lost, unread = _send_round(copy, result, delete, typed, moved)
        if not lost:
            return
        if attempt < PULLS:
            from svc.flows.pull import pull

            if moved and not isinstance(copy, DryRunCopy):
                time.sleep(random.uniform(0, PAUSE * 2**attempt))  # noqa: S311 - spreads clients that collide
            pull(copy, "merge")
            _require_merged(copy)
            result.refused = {}  # the relay decides again, because the manifest may have changed
    result.refused |= dict.fromkeys(sorted(unread), UNREAD)
    if lost <= unread:
        return
    names = ", ".join(sorted(lost - unread)[:3])
    raise Conflict(
        f"others keep changing {names}; your other edits are live, not sealed; "
        "run: svc pull --merge, then push again"
    )


def _require_merged(copy: WorkingCopy) -> None:
    """Raise EditsConflict if this command made a conflict copy. The user must compare the files before
    anything is sent."""
    conflicts = conflict_copies(copy)
    if conflicts:
        foretold = isinstance(copy, DryRunCopy)
        raise EditsConflict(terminal_safe(conflicts[0].path), conflicts[0].by, conflicts, foretold)


def _send_round(
    copy: WorkingCopy, result: PushResult, delete: bool, typed: Collection[str], moved: Counter[str]
) -> tuple[set[str], set[str]]:
    """Send the changes of the folder, again and again until all are sent or must wait for a pull. Returns the
    paths that must be pulled first and, of these, the paths whose files changed in the folder while they were
    read.

    With `delete`, removals are sent, too. `typed` are the paths whose edits are sent as typed edits, which
    the relay accepts whatever others have changed. `moved` counts, for each text, how often others changed it
    meanwhile."""
    lost: set[str] = set()
    unread: set[str] = set()
    costly: list[str] = []
    result.skipped = []
    while True:
        resent = bool(copy.db.flight_kinds())
        scan = copy.scan()
        composed = compose(copy, scan, delete, {*lost, *result.refused}, whole=costly, typed=typed)
        result.skipped = with_kept(composed.skipped + scan.skipped, composed.kept)
        sent = send(copy)
        _note(copy, result, composed, sent)
        lost.update(sent.lost)
        unread.update(sent.unread)
        moved.update(sent.moved)
        costly = sent.costly
        more = sent.accepted and (resent or sent.lost or _pending(copy, sent))
        if not (more or costly):
            break
    return lost | {path for path in copy.db.find_unsettled() if _is_edited(copy, path)}, unread


def _pending(copy: WorkingCopy, sent: SendResult) -> bool:
    """Return whether a file has further edits to send, after the relay has accepted the edits that were
    sent."""
    return any(path in copy.entries and copy.entries[path].pending for path in sent.accepted)


def _is_edited(copy: WorkingCopy, path: str) -> bool:
    entry = copy.entries[path]
    return bool(entry.pending) or copy.digest_on_disk(path) not in (entry.shadow, None)


def _note(copy: WorkingCopy, result: PushResult, composed: Composed, sent: SendResult) -> None:
    accepted = set(sent.accepted)
    removed = {path for path in composed.removed if path in accepted}
    result.removed = sorted({*result.removed, *removed})
    result.sent = sorted({*result.sent, *accepted} - set(result.removed))
    result.size = sum(copy.entries[path].size for path in result.sent if path in copy.entries)
    result.refused.update(sent.refused)
    result.refused.update(dict.fromkeys(composed.marked, MARKED))
    result.bytes += sent.bytes
