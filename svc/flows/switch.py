"""`svc switch`: moves the folder to another branch, or shows a seal in it."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from pathlib import Path

import msgspec

from localstore.core.encoding import digest, unhex
from localstore.core.identity.keys import DeviceKey
from localstore.core.model.live import BootstrapRequest
from localstore.core.model.protection import BranchProtected
from localstore.core.model.ref import NoBranch
from localstore.core.names import ref_name
from localstore.core.paths import parents
from localstore.errors import BranchGone, BranchReplaced, LocalEdits, MergeOpen
from localstore.folder import link
from localstore.folder.scan_result import Scan
from localstore.sync import verify
from localstore.sync.hidden import hidden_files
from localstore.sync.open_merge import open_merge
from localstore.sync.recognise import changes_since_last_seal
from localstore.sync.transfer.transport import Transport
from localstore.sync.working_copy import WorkingCopy
from svc.flows.common import begin, edits_in_the_way, finish_sending
from svc.flows.pull import Mode, PullResult, discard, pull, put_away


class Target(msgspec.Struct, frozen=True):
    """The target of a switch. `transport` sends the requests about the target. `key` is None if the user may
    only read. `seal` is None if the target is a branch. Otherwise the folder shows this seal, and `branch` is
    the branch to which a later switch can return."""

    branch: str
    transport: Transport
    key: DeviceKey | None
    seal: str | None = None


class SwitchResult(msgspec.Struct):
    """The result of a switch. `pulled` is the result of pulling the target. `trash` is the folder to which
    `--force` moved edited files, or None. `carried` are edited files that were kept. `warning` is a sentence
    if the branch that the folder was on was deleted, else ""."""

    branch: str
    pulled: PullResult
    trash: Path | None
    carried: list[str] = []
    warning: str = ""


class _Edit(msgspec.Struct, frozen=True):
    """An edit of a file. `base` is the BLAKE3 of the file before the edit, `mine` the present one. None means
    that there is no file."""

    base: bytes | None
    mine: bytes | None


def switch(copy: WorkingCopy, target: Target, mode: Mode = "plain") -> SwitchResult:
    """Switch the folder to `target`. `mode` says what happens to edits. `plain` keeps edits of files that are
    the same in the target, and raises LocalEdits if there are other edits. `merge` merges all edits, and
    `force` moves them to the trash. If the old branch was deleted or is protected, all differences from the
    last seal count as edits. Raises NotFound, before anything changes, if the target does not exist. Raises
    MergeOpen while a merge is not sealed."""
    if target.seal is None:
        ref_name(target.branch)
    target.transport.ref()
    merging = open_merge(copy)
    if merging is not None:
        raise MergeOpen(merging.name)
    note, detached = "", False
    try:
        trash, carried = _ready(copy, target, mode)
    except (BranchGone, BranchReplaced, NoBranch):
        note = f"branch {copy.repo.branch} is gone; what this folder has beyond its last seal are edits"
        trash, carried = _ready_alone(copy, target, mode)
        detached = True
    except BranchProtected:
        note = f"{copy.repo.branch} is protected; what this folder has beyond its last seal are edits"
        trash, carried = _ready_alone(copy, target, mode)
        detached = True
    if not detached:
        copy.detach()
    shown_seal = msgspec.UNSET if target.seal is None else target.seal
    before = copy.repo.shown_seal or copy.repo.branch
    copy.repo = msgspec.structs.replace(copy.repo, branch=target.branch, seal=shown_seal, before=before)
    link.write_repo(copy.folder, copy.repo)
    copy.use_transport(target.transport)
    copy.key = target.key
    pulled = pull(copy, "merge")
    return SwitchResult(target.seal or target.branch, pulled, trash, carried, note)


def _ready(copy: WorkingCopy, target: Target, mode: Mode) -> tuple[Path | None, list[str]]:
    """Prepare the folder for a switch: depending on the mode, send its edits, keep them or discard them.
    Returns the trash folder (or None), and the edited files that are kept. Raises LocalEdits if some edits
    cannot be kept."""
    if mode != "plain":
        return pull(copy, "force" if mode == "force" else "merge").trash, []
    begin(copy)
    if finish_sending(copy):
        begin(copy)
    scan = copy.scan()
    if any(
        copy.entries[path].pending for path in copy.db.find_unsettled()
    ):  # finish an interrupted merge first
        if edits_in_the_way(copy, scan):
            raise LocalEdits(edits_in_the_way(copy, scan), f"switch {target.branch}")
        pull(copy, "merge")
        scan = copy.scan()
    hidden = hidden_files(copy, scan, copy.db.rows())
    carried = _carried_edits(copy, target, _without(_edits(copy, scan), hidden))
    put_away(copy, hidden)
    return None, carried


def _ready_alone(copy: WorkingCopy, target: Target, mode: Mode) -> tuple[Path | None, list[str]]:
    """Prepare the folder for a switch if its old branch was deleted or is protected. The folder's record is
    set back to the last seal. With the mode `plain`, edits since that seal are kept; if that is impossible,
    LocalEdits is raised. With `force`, they are moved to the trash. Returns the trash folder (or None), and
    the edited files that are kept."""
    scan = copy.scan()
    hidden = hidden_files(copy, scan, ())
    edits = _without(_beyond_last(copy, scan), hidden) if mode == "plain" else {}
    carried = _carried_edits(copy, target, edits)
    if hidden:
        put_away(copy, hidden)
        scan = copy.scan()
    copy.fall_back_to_last_seal()
    return discard(copy, edits_in_the_way(copy, scan)) if mode == "force" else None, carried


def _without(edits: Mapping[str, _Edit], paths: Collection[str]) -> dict[str, _Edit]:
    return {path: edit for path, edit in edits.items() if path not in paths}


def _beyond_last(copy: WorkingCopy, scan: Scan) -> dict[str, _Edit]:
    """Return, by path, the differences between the files of the folder and its last seal. Files that others
    removed are left out."""
    _, changed, new, removed = changes_since_last_seal(copy, scan)
    sealed = copy.db.read_sealed()
    return {
        path: _Edit(
            sealed[path].digest if path in sealed else None,
            stat.digest if (stat := scan.find(path)) is not None else None,
        )
        for path in (*changed, *new, *(missing for missing in removed if missing in copy.entries))
        if not scan.unknown(path)
    }


def _carried_edits(copy: WorkingCopy, target: Target, edits: Mapping[str, _Edit]) -> list[str]:
    """Return the edited files, if a switch can keep all these edits. An edit can be kept if the target's
    version of the file is the one before or after the edit. Raises LocalEdits if some edits cannot be
    kept."""
    if not edits:
        return []
    colliding = _colliding_edits(edits, _files_of(copy, target))
    if colliding:
        raise LocalEdits(colliding, f"switch {target.seal[:12] if target.seal else target.branch}")
    return sorted(edits)


def _edits(copy: WorkingCopy, scan: Scan) -> dict[str, _Edit]:
    """Return, by path, the changes of the folder that the relay has not confirmed: files that are new, edited
    or removed."""
    edits: dict[str, _Edit] = {}
    for path in copy.db.may_need_update():
        entry, stat = copy.entries.get(path), scan.find(path)
        if scan.unknown(path):
            continue
        base = entry.shadow if entry is not None else None
        if entry is not None and entry.pending and entry.settled:
            base = digest(copy.confirmed_lane(entry).text())
        edit = _Edit(base, stat.digest if stat is not None else None)
        if edit.base != edit.mine:
            edits[path] = edit
    return edits


def _files_of(copy: WorkingCopy, target: Target) -> dict[str, bytes]:
    """Return the BLAKE3 of each file that the target has, by path."""
    if target.key is not None:
        request = BootstrapRequest(device_key_id=target.key.id, replica=None, since=0, n=0)
        rows = target.transport.bootstrap(request).rows
        return {row.path: unhex(row.digest) for row in rows if row.kind != "gone"}
    head = target.transport.head()
    if head is None:
        return {}
    payload = verify.head(target.transport, head, copy.last_seal, copy.repo.repo_id)
    return {path: file.digest for path, file in verify.files(target.transport, head, payload).items()}


def _colliding_edits(edits: Mapping[str, _Edit], there: Mapping[str, bytes]) -> list[str]:
    """Return the paths of the edits that a switch cannot keep. An edit cannot be kept if the target has
    another version of the edited file, or has something else at the path of a new file. `there` has the
    BLAKE3 of each file of the target, by path."""
    removed = {path for path, edit in edits.items() if edit.mine is None}
    folders = _folders(path for path in there if path not in removed)
    paths = []
    for path, edit in edits.items():
        if there.get(path) not in (edit.base, edit.mine):
            paths.append(path)
        elif edit.mine is not None and path not in there:
            under = any(above in there and above not in removed for above in parents(path))
            if under or path in folders:
                paths.append(path)
    return sorted(paths)


def _folders(files: Iterable[str]) -> set[str]:
    return {above for path in files for above in parents(path)}
