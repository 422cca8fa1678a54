"""A merge of another branch that was written into the folder and is not sealed yet. The record stores the
merge until it is sealed."""

from __future__ import annotations

import msgspec

from localstore.errors import MergeInterrupted, MergeUnresolved
from localstore.sync import verify
from localstore.sync.working_copy import WorkingCopy

KEY = "merge"


class OpenMerge(msgspec.Struct, frozen=True):
    """A merge that is not sealed yet. `source`: the merged seal; `name`: the branch, tag or seal that the
    user named. `ours`: the folder's seal before the merge, on `branch` (a branch id). `written`,
    `removed`: the paths that the merge wrote and removed. `copies`: path → conflict copy with this
    branch's version. `whole`: whether the merge was written completely."""

    source: str
    name: str
    ours: str | None
    branch: str
    written: list[str] = msgspec.field(default_factory=list)
    removed: list[str] = msgspec.field(default_factory=list)
    copies: dict[str, str] = msgspec.field(default_factory=dict)
    whole: bool = False


def open_merge(copy: WorkingCopy) -> OpenMerge | None:
    """The open merge of this folder's branch; None if there is none."""
    encoded = copy.db.get(KEY)
    if not isinstance(encoded, bytes):
        return None
    merge = msgspec.json.decode(encoded, type=OpenMerge)
    return merge if merge.branch == copy.branch_id else None


def keep(copy: WorkingCopy, merge: OpenMerge | None) -> None:
    """Record the open merge. None records that no merge is open any more."""
    with copy.db.step():
        copy.db.put(KEY, None if merge is None else msgspec.json.encode(merge))


def find_unresolved(copy: WorkingCopy, merge: OpenMerge) -> list[str]:
    """The paths whose conflict copies still exist, sorted."""
    return sorted(path for path, kept_as in merge.copies.items() if copy.exists(kept_as))


def sources_to_seal(copy: WorkingCopy) -> list[str]:
    """The seals that the next seal of this folder has to record as merged; [] without an open merge. If the
    folder's last seal already records the merge, the merge is over. Raises MergeInterrupted if the merge was
    not written completely, MergeUnresolved if one of its conflicts is not resolved."""
    merge = open_merge(copy)
    if merge is None:
        return []
    if copy.last_seal is not None and copy.last_seal != merge.ours:
        payload = verify.seal(copy.transport.seal(copy.last_seal), copy.last_seal, copy.repo.repo_id)
        origin = payload.provenance.merge
        if origin is not None and merge.source in origin.sources:
            keep(copy, None)
            return []
    require_resolved(copy, merge)
    return [merge.source]


def require_resolved(copy: WorkingCopy, merge: OpenMerge) -> None:
    """Raise an error if the merge cannot be sealed: MergeInterrupted if it is not complete, MergeUnresolved
    if files are in conflict."""
    if not merge.whole:
        raise MergeInterrupted(merge.name)
    paths = find_unresolved(copy, merge)
    if paths:
        raise MergeUnresolved(merge.name, paths)
