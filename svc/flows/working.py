"""What the flows of a working copy share: the way in, and what an edit in the way is."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from localstore.core import limits
from localstore.core.encoding import unhex
from localstore.core.errors import SvcError
from localstore.core.model.ref import NoBranch, Ref
from localstore.core.names import MANIFEST
from localstore.core.paths import terminal_safe
from localstore.core.seal import SealPayload
from localstore.core.storage.chunks import file_cap
from localstore.errors import BranchGone, BranchReplaced
from localstore.folder.scan_result import Scan, Skipped
from localstore.record.database import Row, SealedFile, SealedTree
from localstore.record.entry import foreign_lane
from localstore.sync import sealed_tree, verify
from localstore.sync.conflicts import whose
from localstore.sync.interrupted import take_up
from localstore.sync.recognise import adopt_state, against_last, mend_state
from localstore.sync.reconcile import attach, follow
from localstore.sync.remote import authors, connect
from localstore.sync.sealing import adopt_promised
from localstore.sync.settle import recover
from localstore.sync.working_copy import WorkingCopy


def begin(device: WorkingCopy) -> str | None:
    """Finish what was interrupted, bring the frontier up to date; the branch's sealed head. BranchGone or
    BranchReplaced if the branch that this folder is on was deleted: nothing about it has changed then."""
    recover(device)
    take_up(device)
    adopt_state(device)
    mend_state(device)
    if device.key is None or device.repo.shown:
        return _begin_reading(device)
    try:
        told = connect(device)
    except NoBranch as missing:
        raise gone(device, missing) from None
    attach(device)
    follow(device, told.rows)
    adopt_promised(device, told.head)
    return told.head


def gone(device: WorkingCopy, missing: NoBranch) -> SvcError:
    """The error for a folder whose branch is missing: gone, or never there for a folder without a seal."""
    if device.last is None and not device.branch_id:
        return missing
    return BranchGone(device.repo.branch, device.last, missing.extra["default"])


def _require_same(device: WorkingCopy, now: Ref) -> None:
    known = device.branch_id or device.db.text("read_branch")
    if known and now.id and now.id != known:
        raise BranchReplaced(device.repo.branch)


def _begin_reading(device: WorkingCopy) -> str | None:
    """Without a key the frontier is the head's tree, and lanes are known by their bytes."""
    try:
        now = device.transport.ref()
    except NoBranch as missing:
        raise gone(device, missing) from None
    _require_same(device, now)
    head = now.head
    if now.id != device.db.text("read_branch"):
        with device.db.step():
            device.db.put("read_branch", now.id)
    if head is not None and head != device.db.text("read_head"):
        payload = verify.seal(device.transport.seal(head), head, device.repo.repo_id)
        files = verify.tree(device.transport.tree(head), payload)
        with device.db.step():
            device.db.put_rows(_rows(files), (), whole=True)
            device.db.put("read_head", head)
    return head


def _rows(files: dict[str, SealedFile]) -> list[Row]:
    return [
        Row(path, file.kind, foreign_lane(file.digest), 0, 0, 0, file.digest, file.size, False)
        for path, file in files.items()
    ]


class NewHead(msgspec.Struct, frozen=True):
    """What a verified seal has other than the folder's last one: path → its file, None for no file. `whole`:
    these are all its files. `tree`: its directories, where the last seal's are known."""

    changes: Mapping[str, SealedFile | None]
    whole: bool
    tree: SealedTree | None


def verified_head(device: WorkingCopy, head: str | None) -> NewHead | None:
    """The head's tree, after every seal since the folder's last one was verified; None if it is that one."""
    if head is None:
        return NewHead({}, True, None) if device.db.sealed() or device.last else None
    seals = verify.chain(device.transport, head, device.last, device.repo.repo_id)
    if not seals:
        return None
    handles = {one.provenance.who.handle for one in seals if one.key.id != device.device_id}
    device.sealed_by = sorted(terminal_safe(handle) for handle in handles if handle) if device.last else []
    payload = verify.seal(seals[0], head, device.repo.repo_id)
    return _as_frontier(device, payload) or NewHead(
        verify.tree(device.transport.tree(head), payload), True, None
    )


def _as_frontier(device: WorkingCopy, payload: SealPayload) -> NewHead | None:
    """The tree of a seal where it is the frontier as it is known here, which it is while nobody has unsealed
    edits. That is a guess, and the digest of the tree that was signed says whether it is right."""
    if device.last is None or authors(device) or payload.tree_key_id != device.db.text("tree_key_id"):
        return None
    changes = device.db.beyond_seal()
    if device.db.files_of_branch() > limits.TREE_ENTRIES:
        return None
    tree = sealed_tree.after(device, changes, unhex(payload.content_digest))
    return None if tree is None else NewHead(changes, False, tree)


def beyond_last(device: WorkingCopy, scan: Scan) -> list[str]:
    """Files of the last seal that are changed or removed here, whatever was sent of them since."""
    _, changed, _, removed = against_last(device, scan)
    recorded = device.db.unwritable()
    return [*changed, *(path for path in removed if path not in recorded and not scan.unknown(path))]


def dirty(device: WorkingCopy, scan: Scan) -> list[str]:
    """Tracked files with edits that are not confirmed, and new files where the branch has other ones."""
    flying = device.db.flight_kinds()
    found, new = [], []
    for path in {*device.db.moved(), *flying}:
        entry, stat = device.entries.get(path), scan.find(path)
        if scan.unknown(path):
            continue
        if entry is None:
            new.append(path)
        elif entry.pending or path in flying or (stat.digest if stat else None) != entry.shadow:
            found.append(path)
    rows = device.db.rows() if new else {}
    for path in new:
        row, stat = rows.get(path), scan.find(path)
        if row is not None and stat is not None and row.digest != stat.digest:
            found.append(path)
    return sorted(found)


def tree_of(device: WorkingCopy, seal: str | None) -> dict[str, SealedFile]:
    """The files of a seal, verified; of the folder's last one without a name."""
    if seal is None or seal == device.last:
        return device.db.sealed()
    payload = verify.seal(device.transport.seal(seal), seal, device.repo.repo_id)
    return verify.tree(device.transport.tree(seal), payload)


def read_caps(device: WorkingCopy) -> str | None:
    """Take the cap of a file from the repository's kind and `.svc.yaml`; the kind that this names, if any."""
    if device.files.stat(MANIFEST) is None:
        device.file_cap = file_cap(device.repo_kind)
        return None
    from localstore.core.manifest import parse  # loads a YAML reader

    manifest = parse(device.files.read(MANIFEST))
    device.file_cap = manifest.file_cap(device.repo_kind or manifest.kind or "")
    return manifest.kind


class Kept(msgspec.Struct, frozen=True):
    """My version of `path`, which is called `kept_as` now. Of texts that could not be merged also which lines
    stand against each other, here and there, and the handle of whoever wrote the other version, if that is
    known."""

    path: str
    kept_as: str
    by: str | None = None
    lines: str | None = None
    kept_lines: str | None = None


def kept_aside(device: WorkingCopy) -> list[Kept]:
    """What became a conflict copy in this run."""
    found = []
    for path, name in device.conflicts:
        clash = device.db.conflicts.get(name)
        if clash is not None and clash.path == path:
            found.append(Kept(path, name, clash.by, clash.lines or None, clash.kept_lines or None))
        else:
            found.append(Kept(path, name))
    return found


def merged_with(device: WorkingCopy) -> dict[str, str | None]:
    """What was merged in this run and is no conflict."""
    kept = {path for path, _ in device.conflicts}
    return {path: whose(device, path) for path in sorted(device.merged - kept)}


def unwritable(device: WorkingCopy) -> list[Skipped]:
    """Files of the branch that this folder cannot hold."""
    return [Skipped(terminal_safe(path), reason) for path, reason in device.db.unwritable().items()]
