"""`svc merge`: merges another branch into the folder, as edits that the next push seals.

Texts that both sides changed are merged by lines and words (docs/design/011). In a conflict the path gets the
other branch's version, and this branch's version becomes a conflict copy, as after a pull. If one side
deleted a file that the other edited, the edited file is kept. If one side has a file where the other has a
directory, the directory keeps the name and the file becomes a conflict copy.

In this module `mine` and `ours` mean this folder's side, and `theirs` the branch that is merged in."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import msgspec

from localstore.core.diff.text_merge import TextConflict, merge
from localstore.core.encoding import digest
from localstore.core.errors import NotFound
from localstore.core.merge import moves, three_way
from localstore.core.merge.moves import Moves
from localstore.core.merge.three_way import Plan, Texts
from localstore.core.model.limits import TEXT_FILE
from localstore.core.paths import parents
from localstore.core.tree import TreeEntry
from localstore.core.tree.read import Change
from localstore.errors import FolderShowsSeal, MergeCollides, MergeOpen, NoMerge, UnpulledSeal
from localstore.folder.files import Content
from localstore.record.conflicts import RecordedConflict, line_ranges
from localstore.record.database import SealedFile
from localstore.sync.open_merge import OpenMerge, keep, open_merge
from localstore.sync.sealed_tree import changes_between, entry_of
from localstore.sync.settle import recover
from localstore.sync.working_copy import WorkingCopy
from svc.flows.common import ConflictCopy, Folder, begin, tree_of
from svc.flows.restore import contents_of, replace_files, require_room

Tree = Mapping[str, SealedFile]


class Source(msgspec.Struct, frozen=True):
    """The seal to merge in, and the `name` that the user typed for it. `bases` are the nearest common
    ancestors of this seal and the folder's seal."""

    seal: str
    name: str
    bases: list[str]


class MergeResult(msgspec.Struct):
    """The result of a merge or of its dry run."""

    seal: str  # that is merged in
    name: str  # by which it was asked for
    written: list[str] = msgspec.field(default_factory=list)  # paths that were written
    removed: list[str] = msgspec.field(default_factory=list)  # paths that were removed
    merged: list[str] = msgspec.field(default_factory=list)  # texts that both sides changed, without conflict
    # Paths that one side deleted and the other edited; the edit stays
    kept: list[str] = msgspec.field(default_factory=list)
    # Files in two versions, of which one is a copy
    conflicts: list[ConflictCopy] = msgspec.field(default_factory=list)
    trash: Path | None = None  # folder of what was replaced; None: nothing was
    up_to_date: bool = False  # the branch contains everything
    dry_run: bool = False  # nothing was written


class _Work(msgspec.Struct):
    """The changes that a merge will make. `files` maps a path to a file of a seal, `texts` a path to its
    merged text, and `moved` a path to the path of its conflict copy. `removed` has paths."""

    result: MergeResult
    files: dict[str, SealedFile] = msgspec.field(default_factory=dict)
    texts: dict[str, bytes] = msgspec.field(default_factory=dict)
    removed: list[str] = msgspec.field(default_factory=list)
    moved: dict[str, str] = msgspec.field(default_factory=dict)
    records: list[RecordedConflict] = msgspec.field(default_factory=list)


def prepare(copy: WorkingCopy) -> str | None:
    """Update the folder's record before a merge. Returns the id of the folder's last seal; None if there is
    no seal yet. Raises UnpulledSeal if the branch has a newer seal, FolderShowsSeal if the folder shows a
    seal instead of a branch, MergeOpen if an earlier merge is not sealed yet."""
    if copy.repo.shown_seal:
        raise FolderShowsSeal(copy.repo.shown_seal, copy.repo.branch)
    head = begin(copy)
    if head != copy.last_seal or copy.lacks_part:
        raise UnpulledSeal(copy.repo.branch, head)
    merging = open_merge(copy)
    if merging is not None:
        raise MergeOpen(merging.name)
    return head


def bring(copy: WorkingCopy, source: Source, dry_run: bool = False) -> MergeResult:
    """Merge a seal into the folder. The caller must call `prepare` first. Raises MergeCollides, before
    anything changes, if the merge would overwrite unsealed edits. With `dry_run`, returns the same result but
    changes nothing."""
    if source.seal in source.bases:
        return MergeResult(source.seal, source.name, up_to_date=True, dry_run=dry_run)
    ours, theirs = tree_of(copy, None), tree_of(copy, source.seal)
    bases = [tree_of(copy, base) for base in source.bases] or [{}]
    three_way.require_bases(bases)
    plans = [_plan(copy, changes_between(base, ours), changes_between(base, theirs)) for base in bases]
    work = _worked_out(copy, source, plans, ours, theirs)
    _require_sealed(copy, source, work, ours)
    require_room(copy, [*work.files, *work.texts], [*work.removed, *work.moved])
    work.result.dry_run = dry_run
    if not dry_run:
        _carry_out(copy, source, work)
    return work.result


def abort(copy: WorkingCopy) -> MergeResult:
    """Undo the merge that is not sealed yet. The files that it changed are written as they were in the
    folder's last seal. Raises NoMerge if there is none."""
    recover(copy)
    merging = open_merge(copy)
    if merging is None:
        raise NoMerge
    ours = tree_of(copy, merging.ours) if merging.ours else {}
    # A conflict that was resolved may have put the other side's file in the place of a directory.
    lost = [
        path
        for path in ours
        if any(above in merging.copies for above in parents(path)) and not copy.exists(path)
    ]
    touched = {*merging.written, *merging.removed, *merging.copies, *lost}
    back = {
        path: ours[path]
        for path in sorted(touched)
        if path in ours and copy.digest_on_disk(path) != ours[path].digest
    }
    gone = [  # files only: a directory where the other side has a file is this folder's own
        path for path in sorted(touched) if path not in ours and copy.digest_on_disk(path) is not None
    ]
    gone += [kept_as for kept_as in merging.copies.values() if copy.exists(kept_as)]
    digests = {path: file.digest for path, file in back.items()}
    trash = replace_files(copy, contents_of(copy, back), digests, gone)
    with copy.db.step():
        for kept_as in merging.copies.values():
            copy.db.conflicts.remove(kept_as)
        keep(copy, None)
    return MergeResult(merging.source, merging.name, sorted(back), gone, trash=trash)


def _plan(copy: WorkingCopy, ours: Mapping[str, Change], theirs: Mapping[str, Change]) -> Plan:
    searches = moves.searches(ours, theirs)
    sizes = {name: size for search in searches for name, size in search.digests().items()}
    _fetch(copy, sizes)
    texts = {name: copy.text(name) for name in sizes}
    return three_way.plan(ours, theirs, Moves(*(search.pairs(texts) for search in searches)))


def _worked_out(copy: WorkingCopy, source: Source, plans: Sequence[Plan], ours: Tree, theirs: Tree) -> _Work:
    work = _Work(MergeResult(source.seal, source.name))
    touched = sorted({path for plan in plans for path in (*plan.taken, *plan.texts, *plan.conflicts)})
    conflicts = any(plan.conflicts for plan in plans)
    folders = {above for path in (*ours, *theirs) for above in parents(path)} if conflicts else set()
    _fetch(copy, {name: size for plan in plans for name, size in plan.digests().items()})
    for path in touched:
        if path in folders and _clashes(path, plans, ours, theirs):
            _keep_directory(copy, work, path, ours, theirs)
            continue
        ways = [_outcome_of(copy, plan, path, ours.get(path)) for plan in plans]
        if all(way == ways[0] for way in ways) and not isinstance(ways[0], list):
            _take(work, path, ways[0], ours.get(path), theirs)
        else:
            clashes = next((way for way in ways if isinstance(way, list)), [])
            texts = next((plan.texts[path] for plan in plans if path in plan.texts), None)
            _, mine, other = texts.paths if texts is not None else (path, path, path)
            base = texts.base if texts is not None else None
            _conflict(copy, work, path, ours.get(mine), theirs.get(other), base, clashes)
    return work


def _outcome_of(
    copy: WorkingCopy, planned: Plan, path: str, mine: SealedFile | None
) -> TreeEntry | bytes | list[TextConflict] | None:
    """Return what the merge will put at a path: a file of one side, a merged text, or None for no file. If
    the two sides conflict, returns a list of the conflicting lines. This list is empty if the conflict is not
    about lines. `mine` is this folder's file."""
    if path in planned.taken:
        return planned.taken[path]
    if path not in planned.texts:
        return [] if path in planned.conflicts else entry_of(mine)
    texts: Texts = planned.texts[path]
    base = copy.text(texts.base.digest) if texts.base is not None else b""
    outcome = merge(base, copy.text(texts.theirs.digest), copy.text(texts.ours.digest))
    return outcome.conflicts or ([] if len(outcome.text) > TEXT_FILE else outcome.text)


def _take(
    work: _Work,
    path: str,
    way: TreeEntry | bytes | list[TextConflict] | None,
    mine: SealedFile | None,
    theirs: Tree,
) -> None:
    """Note in `work` what a merge without conflict puts at a path. `way` is a file, the merged text, or None
    to remove the file. `mine` is the file that this folder has there."""
    if way is None:
        work.removed.append(path)
        work.result.removed.append(path)
    elif isinstance(way, bytes):
        work.result.merged.append(path)
        if mine is None or digest(way) != mine.digest:
            work.texts[path] = way
            work.result.written.append(path)
    elif isinstance(way, TreeEntry) and entry_of(mine) != way:
        work.files[path] = SealedFile(way.kind, way.digest, way.size)
        work.result.written.append(path)


def _conflict(
    copy: WorkingCopy,
    work: _Work,
    path: str,
    mine: SealedFile | None,
    theirs: SealedFile | None,
    base: TreeEntry | None,
    clashes: list[TextConflict],
) -> None:
    """Note in `work` that there is a conflict at `path`. The path gets `theirs`, and `mine` becomes the
    conflict copy. If one side deleted the file and the other edited it, the edited file stays. `clashes` are
    the conflicting lines."""
    if mine is None or theirs is None:
        if mine is not None or theirs is not None:
            work.result.kept.append(path)
        if theirs is not None:
            work.files[path] = theirs
            work.result.written.append(path)
        return
    kept_as = _free_name(copy, work, path)
    work.files[path], work.files[kept_as] = theirs, mine
    work.moved[path] = kept_as
    lines = line_ranges([clash.theirs for clash in clashes]), line_ranges([clash.mine for clash in clashes])
    texts = mine.kind == theirs.kind == "text"
    base_digest = base.digest if texts and base is not None and base.kind == "text" else None
    work.records.append(
        RecordedConflict(path, kept_as, base_digest, theirs.digest, mine.digest, None, *lines)
    )
    work.result.conflicts.append(ConflictCopy(path, kept_as, None, *(lines if clashes else (None, None))))
    work.result.written.append(path)


def _clashes(path: str, plans: Sequence[Plan], ours: Tree, theirs: Tree) -> bool:
    """Return whether one side of a merge has a file at this path and the other side has a directory there."""
    return any(path in plan.conflicts for plan in plans) and (path in ours) != (path in theirs)


def _keep_directory(copy: WorkingCopy, work: _Work, path: str, ours: Tree, theirs: Tree) -> None:
    """Note in `work` that a file and a directory conflict at `path`. The directory keeps `path`. The file,
    from either side, becomes a conflict copy beside it."""
    kept_as = _free_name(copy, work, path)
    file = ours.get(path) or theirs[path]
    work.files[kept_as] = file
    work.moved[path] = kept_as
    if path in ours:
        work.removed.append(path)
    theirs_digest, mine_digest = (None, file.digest) if path in ours else (file.digest, None)
    work.records.append(RecordedConflict(path, kept_as, None, theirs_digest, mine_digest, None, "", ""))
    folder: Folder = "theirs" if path in ours else "mine"
    work.result.conflicts.append(ConflictCopy(path, kept_as, folder=folder))


def _free_name(copy: WorkingCopy, work: _Work, path: str) -> str:
    return copy.free_name(path, work.moved.values())


def _require_sealed(copy: WorkingCopy, source: Source, work: _Work, ours: Tree) -> None:
    """Raise MergeCollides if a file that the merge would change differs from the folder's last seal."""
    colliding = []
    for path in {*work.files, *work.texts, *work.removed, *work.moved} - set(work.moved.values()):
        sealed = ours.get(path)
        if copy.digest_on_disk(path) != (sealed.digest if sealed is not None else None):
            colliding.append(path)
    if colliding:
        raise MergeCollides(source.name, sorted(colliding))


def _carry_out(copy: WorkingCopy, source: Source, work: _Work) -> None:
    result = work.result
    merging = OpenMerge(
        source.seal,
        source.name,
        copy.last_seal,
        copy.branch_id,
        [*work.files.keys() - set(work.moved.values()), *work.texts],
        list(work.removed),
        dict(work.moved),
    )
    with copy.db.step():
        keep(copy, merging)
        for record in work.records:
            copy.db.conflicts.put(record)
    digests = {path: file.digest for path, file in work.files.items()}
    digests |= {path: digest(text) for path, text in work.texts.items()}
    result.trash = replace_files(copy, _contents(copy, work), digests, work.removed)
    keep(copy, msgspec.structs.replace(merging, whole=True))


def _contents(copy: WorkingCopy, work: _Work) -> Iterator[tuple[str, Content]]:
    """Yields (path, content) of each file to write. Conflict copies come first, because they keep content
    that other files replace."""
    copies = set(work.moved.values())
    yield from contents_of(copy, {path: file for path, file in work.files.items() if path in copies})
    yield from contents_of(copy, {path: file for path, file in work.files.items() if path not in copies})
    yield from work.texts.items()


def _fetch(copy: WorkingCopy, sizes: Mapping[bytes, int]) -> None:
    """Download the texts that the record lacks. `sizes` maps the digest of each text to its size."""
    missing = {name: size for name, size in sizes.items() if copy.objects.get(name) is None}
    for _ in copy.fetch(missing, keep=True):
        pass
    for name in missing:
        if copy.objects.get(name) is None:
            raise NotFound(f"the server did not send the text {name.hex()[:12]}; try again")
