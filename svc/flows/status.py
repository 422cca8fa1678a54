"""`svc status`: finds the differences between the folder, its last seal and the branch."""

from __future__ import annotations

from typing import Literal

import msgspec

from localstore.core.errors import NotFound, ServerUnreachable, Unauthorized
from localstore.core.model.ref import NoBranch, Ref
from localstore.errors import BranchReplaced
from localstore.folder.scan_result import Scan, Skipped
from localstore.sync.held_back import HeldBack, held_back
from localstore.sync.open_merge import open_merge
from localstore.sync.recognise import changes_since_last_seal
from localstore.sync.reconcile import is_behind
from localstore.sync.uncarried import with_kept
from localstore.sync.working_copy import WorkingCopy
from svc.flows.background import BackgroundCall
from svc.flows.common import list_unwritable, missing_branch_error
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
from svc.flows.merge.resolve import all_unresolved
from svc.flows.place.folder import repository_gone
from svc.flows.unsendable import find_unsendable

BranchState = Literal["here", "gone", "replaced", "moved_back"]
WAIT_SECONDS = 3.0  # for the server's answer, after the scan


class FolderStatus(msgspec.Struct):
    """The differences between the folder, its last seal and the branch. Paths are grouped by what a push does
    with them."""

    repo: str  # OWNER/NAME
    branch: str  # that the folder is linked to
    last_seal: str | None  # of the folder; None: it has none
    head: str | None = None  # of the branch; None: it has none, or it is unknown
    behind: bool = False  # the branch has a seal that this folder lacks
    offline: bool = False  # the server was not asked, did not answer in time, or refused to
    changed: list[str] = msgspec.field(default_factory=list)  # paths that differ from the last seal
    new: list[str] = msgspec.field(default_factory=list)  # paths that the last seal lacks
    removed: list[str] = msgspec.field(default_factory=list)  # paths of the last seal that the folder lacks
    # Paths that are older here than in the last seal, or not here yet: others edited them before it was made
    lacking: list[str] = msgspec.field(default_factory=list)
    ignored: int = 0  # how many files are ignored
    skipped: list[Skipped] = msgspec.field(default_factory=list)  # files that cannot be sent, with the reason
    unsent: int = 0  # updates without an answer
    # Replaced: by another branch of its name; moved_back: to before `last_seal`
    branch_state: BranchState = "here"
    shown: str | None = None  # the seal that the folder shows instead of a branch
    advice: str = ""  # what to do about `branch_state`, or about the server's refusal
    left_out: list[IgnoredFile] = msgspec.field(default_factory=list)  # ignored files, if asked for
    # Files that git tracks and rules ignore; reported once
    tracked: list[IgnoredFile] = msgspec.field(default_factory=list)
    warnings: list[str] = msgspec.field(default_factory=list)  # about names; reported once
    # Copy of an unresolved conflict → the path it conflicts with
    unresolved: dict[str, str] = msgspec.field(default_factory=dict)
    merging: str | None = None  # what an open merge brought in, by its name
    # New files that git ignores for this person alone
    git_ignored: list[HeldBack] = msgspec.field(default_factory=list)

    @property
    def uncompared(self) -> bool:
        """Whether the branch has seals but the folder has none of them. That is so if the folder was just
        linked, or if a switch was interrupted."""
        return self.last_seal is None and self.behind


def status(
    copy: WorkingCopy, offline: bool = False, show_ignored: bool = False, signed_in: bool = True
) -> FolderStatus:
    """Compare the folder, its last seal and the branch. With `show_ignored`, ignored files are listed, too.
    `signed_in`: whether the server is asked with a session.

    The folder is not changed, nor is its record, except for the stored times and sizes of files. The server
    is asked during the scan. If it has not answered WAIT_SECONDS after the scan, the result is marked as
    offline."""
    branch_call = None if offline or copy.repo.shown_seal else BackgroundCall(copy.transport.ref)
    scan = copy.scan(lean=True)
    last, changed, new, removed = changes_since_last_seal(copy, scan)
    recorded = copy.db.unwritable()
    result = FolderStatus(
        repo=copy.repo.repo,
        branch=copy.repo.branch,
        last_seal=last,
        changed=changed,
        new=new,
        removed=[path for path in removed if path not in recorded and not scan.unknown(path)],
        ignored=scan.ignored,
        skipped=scan.skipped + list_unwritable(copy),
        unsent=len(copy.db.flight_kinds()),
        shown=copy.repo.shown_seal,
    )
    _find_lacking(copy, scan, result)
    result.unresolved = all_unresolved(copy)
    merge = open_merge(copy)
    if merge is not None and merge.ours == last:
        result.merging = merge.name
    _leave_out(copy, scan, result, [path for path in removed if scan.unknown(path)])
    result.left_out = list(find_ignored(copy)) if show_ignored else []
    result.tracked = tracked_by_git(copy) if show_ignored else newly_tracked_by_git(copy)
    if result.new:
        result.warnings = warn_unportable(copy, result.new, scan.files)
        result.git_ignored = held_back(copy, scan, result.new)
    edits = {path: scan.find(path) for path in (*result.changed, *result.new)}
    result.warnings += pointers(copy, {path: stat.size for path, stat in edits.items() if stat})
    result.warnings += index_warnings(copy) + syncthing_warnings(copy, "status")
    _compare(copy, branch_call, result, signed_in)
    return result


def _find_lacking(copy: WorkingCopy, scan: Scan, result: FolderStatus) -> None:
    """Move paths from `changed` and `removed` to `lacking` if a pull only has to bring them. A seal holds the
    branch as it is, so the folder that made it may lack what others had edited."""
    sealed = copy.db.read_sealed() if result.changed or result.removed else {}
    for path in (*result.changed, *result.removed):
        entry, row, stat = copy.entries.get(path), copy.db.row(path), scan.find(path)
        if row is None or path not in sealed or row.digest != sealed[path].digest:
            continue
        if entry is None:
            unedited = stat is None
        else:
            unedited = not entry.pending and entry.shadow == (stat.digest if stat else None)
        if unedited and is_behind(entry, row):
            result.lacking.append(path)
    result.lacking.sort()
    lacking = set(result.lacking)
    result.changed = [path for path in result.changed if path not in lacking]
    result.removed = [path for path in result.removed if path not in lacking]


def _leave_out(copy: WorkingCopy, scan: Scan, result: FolderStatus, unseen: list[str]) -> None:
    """Move the changes that a push would not send out of the lists of changes in `result`. Files over a size
    cap move from `changed` and `new` to `skipped`. A missing file is taken out of `removed` if something that
    svc cannot send, such as a link, is in its place."""
    excluded = find_unsendable(copy, scan, result.changed, result.new, result.removed)
    result.skipped += excluded.over.values()
    result.changed = [path for path in result.changed if path not in excluded.over]
    result.new = [path for path in result.new if path not in excluded.over]
    result.removed = [path for path in result.removed if path not in excluded.paths]
    kept_paths = excluded.kept
    for path in unseen:
        kept_paths.setdefault(scan.hiding(path) or path, []).append(path)
    result.skipped = with_kept(result.skipped, kept_paths)


def _compare(
    copy: WorkingCopy, branch_call: BackgroundCall[Ref] | None, result: FolderStatus, signed_in: bool
) -> None:
    if result.shown:
        result.head = result.shown
        return
    try:
        if branch_call is None:
            raise ServerUnreachable
        ref = branch_call.answer(WAIT_SECONDS)
    except ServerUnreachable:
        result.offline = True
        return
    except NoBranch as missing:
        error = missing_branch_error(copy, missing)
        if error is missing:
            raise
        result.branch_state, result.advice = "gone", error.detail
        return
    except (Unauthorized, NotFound) as refused:  # what differs here is known all the same
        result.offline = True
        gone = isinstance(refused, NotFound) and refused.bare
        result.advice = repository_gone(copy.repo, signed_in).detail if gone else refused.detail
        return
    branch_id = copy.branch_id or copy.db.text("read_branch")
    if branch_id and branch_id != ref.id:
        result.branch_state, result.advice = "replaced", BranchReplaced(copy.repo.branch).detail
        return
    result.head = ref.head
    if result.head != result.last_seal:
        result.behind = True
        _look_for_last_seal(copy, result)


def _look_for_last_seal(copy: WorkingCopy, result: FolderStatus) -> None:
    """Ask the server for the folder's last seal. If the server does not have it, `result` says that the
    branch has moved back."""
    last = result.last_seal
    if last is None:
        return
    try:
        BackgroundCall(lambda: copy.transport.seal(last)).answer(WAIT_SECONDS)
    except ServerUnreachable:
        return
    except NotFound:
        result.branch_state, result.behind = "moved_back", False
        result.advice = (
            f"{copy.repo.branch} on the server is older than this folder, as after the server was restored "
            "from a backup; svc push sends again what it lacks"
        )
