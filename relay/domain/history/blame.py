"""Blame: which seal each line comes from, called the line's owner. Blame is computed on request and cached.
For a newer version of a file it continues from the cached owners of an older one.

The owners of a version's lines are derived from the owners in its parents' versions, as in git. Lines that a
merge took from a parent keep their owners; the first parent is compared first, the merged seals last. A
squash counts as a merge, so its lines belong to the seals that it combined. A file that was moved unchanged
keeps its owners.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import takewhile

from localstore.core.diff import blame as kernel
from localstore.core.errors import NotFound, NotText, TooLarge
from localstore.core.model.history import Blame, BlameRange
from localstore.core.model.limits import BLAME_LINES, BLAME_VERSIONS, DIFF_BYTES, MIB
from localstore.core.seal import LISTED
from localstore.core.storage.file_kind import kind_of
from localstore.core.tree import TreeEntry
from relay.caller import View
from relay.db import seal as seals
from relay.db.engine.database import Row
from relay.db.seal import SealRow
from relay.domain.history import blame_cache, renames, sealed
from relay.domain.history.history import load_seals as seal_rows
from relay.domain.history.rows import blame as rows
from relay.domain.history.wire import to_wire
from relay.memory import texts as heavy
from relay.memory.texts import Owners

KEEP_EVERY = 64  # versions between cached owners of a long history
AT_ONCE, AT_ONCE_BYTES = 32, 8 * MIB  # versions whose text is read together
FIRST_STEPS = 64  # seals searched for versions at first
READ = (*LISTED, "squash")  # strategies whose sources own lines; a rebased seal owns its own
DEEPEST = 50  # nested histories that are followed at once


@dataclass(slots=True, frozen=True)
class _Version:
    seal_id: str
    digest: bytes
    size: int


@dataclass(slots=True)
class _SpentWork:
    """The work that one request has done so far: how many versions and lines were compared."""

    versions: int = 0
    lines: int = 0

    def enough(self) -> bool:
        return self.versions >= BLAME_VERSIONS or self.lines >= BLAME_LINES


@dataclass(slots=True)
class _Progress:
    """The state of computing the blame of one file. `owners`: by seal id, the owners of the lines that the
    file has at this seal; the owner of a line is the seal that it comes from. `unkept`: number of versions
    handled since owners were last cached. `first_parent`: whether a merge owns the lines that it took from
    other seals. `depth`: how many other files are being followed."""

    view: View
    path: str
    spent: _SpentWork
    first_parent: bool
    owners: dict[str, Owners] = field(default_factory=dict)
    unkept: int = 0
    depth: int = 0


class _TooDeep(Exception):
    """Raised if blame of one file must follow too long a chain of other files. `wanted`: the (path, seal id,
    file) to compute first."""

    def __init__(self, path: str, seal_id: str, file: TreeEntry) -> None:
        super().__init__(path)
        self.wanted = (path, seal_id, file)


async def blame(view: View, seal_id: str, path: str, *, first_parent: bool = False) -> Blame:
    seal = await sealed.seal(view, seal_id)
    file = await sealed.find_entry(view, seal.root, path)
    _require_text(file, path)
    owners = await _resolve(view, path, seal.id, file, first_parent=first_parent)
    ranges = kernel.ranges(owners)
    async with view.read() as tx:
        named = await seal_rows(tx, view, sorted({owner for _, _, owner in ranges}))
    by_id = {row.id: to_wire(row) for row in named}
    return Blame(
        path=path,
        seal_id=seal.id,
        lines=len(owners),
        ranges=[
            BlameRange(
                start=start + 1,
                end=end,
                seal_id=owner,
                who=by_id[owner].provenance.who,
                device_key_id=by_id[owner].provenance.device_key_id,
                sealed_at=by_id[owner].created_at,
                message=by_id[owner].message,
            )
            for start, end, owner in ranges
        ],
    )


def _require_text(file: TreeEntry, path: str) -> None:
    if file.kind != "text":
        raise NotText(f"{path} is bytes; blame reads text")
    if file.size > DIFF_BYTES:
        raise TooLarge(f"{path} has {file.size} bytes; blame goes up to {DIFF_BYTES}")


async def _resolve(view: View, path: str, seal_id: str, file: TreeEntry, *, first_parent: bool) -> Owners:
    """Find the owner of each line of the file at the seal: the seal that the line comes from. Through renames
    and merges, the owners may depend on other files. If this chain is too long, the owners in the last of
    these files are computed and cached first."""
    waiting = [(path, seal_id, file)]
    spent = _SpentWork()
    while True:
        try:
            owners = await _find_owners(
                _Progress(view, waiting[-1][0], spent, first_parent), *waiting[-1][1:]
            )
        except _TooDeep as deep:
            waiting.append(deep.wanted)
            if len(waiting) > BLAME_VERSIONS // DEEPEST:
                raise _too_long(path) from None
            continue
        waiting.pop()
        if not waiting:
            return owners


async def _find_owners(work: _Progress, seal_id: str, file: TreeEntry) -> Owners:
    """Find the owner of each line of the file at the seal: the seal that the line comes from. Follows the
    first parents of the seal."""
    work.depth += 1
    try:
        return await _owners_below(work, seal_id, file)
    finally:
        work.depth -= 1


async def _owners_below(work: _Progress, seal_id: str, file: TreeEntry) -> Owners:
    versions, start = await _find_versions(work, seal_id)
    if not versions or versions[0].digest != file.digest:
        raise NotFound  # the tree and its changes disagree: nothing that could be told of this file
    if start != 0 and work.depth > DEEPEST:
        raise _TooDeep(work.path, seal_id, file)
    older = versions[start] if start is not None else None
    ahead = versions[:start][::-1]  # oldest first
    while ahead:
        if work.spent.enough():
            await _cache_owners(work, older)
            raise _too_long(work.path)
        batch = _take_batch(ahead)
        await _resolve_batch(work, batch, older)
        ahead, older = ahead[len(batch) :], batch[-1]
        if work.unkept >= KEEP_EVERY or not ahead:
            await _cache_owners(work, older)
    return work.owners[versions[0].seal_id]


def _too_long(path: str) -> TooLarge:
    return TooLarge(f"{path} has too long a history for one answer; ask again to go on")


async def _find_versions(work: _Progress, seal_id: str) -> tuple[list[_Version], int | None]:
    """Find the versions of the file in the history of the seal, along first parents. Returns (versions,
    known). `versions`: newest first. `known`: index of the newest version whose line owners are known, or
    None.

    The list ends at this known version, or where the file was missing or not text. The search first reads a
    few steps of history, then twice as many each time, because the whole history is seldom needed.
    """
    versions: list[_Version] = []
    head, steps = seal_id, FIRST_STEPS
    while True:
        async with work.view.read() as tx:
            path_rows = await tx.all(rows.VERSIONS, head=head, path=work.path, steps=steps)
        below = None
        if path_rows and path_rows[-1][1] == steps:
            below = path_rows.pop()[0]
        elif path_rows:
            path_rows[-1:] = await _read_root_row(work, path_rows[-1])
        if work.view.repo.partial:
            path_rows = await _cut_at_missing(work, path_rows)
        fresh = list(takewhile(_is_text, path_rows))
        page = [_Version(changed_id, bytes(digest), size) for changed_id, _, _, digest, size in fresh]
        index = await _find_known(work, page)
        versions += page
        if index is not None:
            return versions, len(versions) - len(page) + index
        if below is None or len(fresh) < len(path_rows) or (path_rows and not await _has_file(work, below)):
            return versions, None
        head, steps = below, steps * 2


async def _read_root_row(work: _Progress, end: Row) -> list[Row]:
    """The change of the file in the first seal of a history, as a list of at most one row. This seal changes
    everything in its tree; if the tree lacks the file, the list is empty. `end`: a row that names the
    seal."""
    root_seal = await sealed.seal(work.view, end[0])
    file = (await sealed.find_entries(work.view, root_seal.root, [work.path])).get(work.path)
    return [(*end[:2], file.kind, file.digest, file.size)] if file is not None else []


async def _cut_at_missing(work: _Progress, changed_rows: list[Row]) -> list[Row]:
    """End the list `changed_rows` at the first seal whose file this repository lacks. The row of this seal
    then says that the file was removed.

    All repositories that have a seal share the list of its changes, so the list may name a file that this
    repository lacks.
    """
    for at, row in enumerate(changed_rows):
        if not await _has_file(work, row[0]):
            return [*changed_rows[:at], (*row[:2], None, None, None)]
    return changed_rows


def _is_text(row: Row) -> bool:
    _, _, kind, _, size = row
    return bool(kind == "text" and size <= DIFF_BYTES)


async def _find_known(work: _Progress, versions: list[_Version]) -> int | None:
    """The index of the newest version whose line owners (the seals that the lines come from) are known or
    cached. None if there is none."""
    start = next((at for at, version in enumerate(versions) if version.seal_id in work.owners), None)
    if start == 0 or not versions:
        return start
    cached = await _load_cached(work, versions[:start])  # newer ones may be cached
    return start if cached is None else cached


async def _has_file(work: _Progress, seal_id: str) -> bool:
    """Whether the seal's tree has a file at the path."""
    seal = await sealed.seal(work.view, seal_id)
    return work.path in await sealed.find_entries(work.view, seal.root, [work.path])


def _take_batch(ahead: Sequence[_Version]) -> Sequence[_Version]:
    """The first versions of `ahead`, as many as may be read and compared together."""
    size, count = 0, 0
    for version in ahead[:AT_ONCE]:
        size += version.size
        if count and size > AT_ONCE_BYTES:
            break
        count += 1
    return ahead[:count]


async def _resolve_batch(work: _Progress, batch: Sequence[_Version], older: _Version | None) -> None:
    """Find the line owners in the newest version of `batch`, whose versions are sorted from old to new.
    `older`: the version before the batch, whose owners are known; None if there is none."""
    async with work.view.read() as tx:
        ids = [version.seal_id for version in batch]
        parents = await seals.find_parents(tx, ids)
        merged = await seals.held_sources(tx, work.view.repo.id, ids, READ)
    if work.first_parent:
        parents, merged = {seal_id: parents[seal_id][:1] for seal_id in ids}, {seal_id: [] for seal_id in ids}
    texts = await _read_texts(work, {version.digest for version in (*batch, *([older] if older else []))})
    successive: list[_Version] = []  # those with one parent, which has the version before
    for version in batch:
        work.spent.versions, work.unkept = work.spent.versions + 1, work.unkept + 1
        parent_ids, merged_ids = parents[version.seal_id], merged[version.seal_id]
        if len(parent_ids) == 1 and not merged_ids and (successive or older):
            successive.append(version)
            continue
        older = await _carry_owners(work, successive, older, texts)
        successive = []
        owners = await _find_branched_owners(work, version, parent_ids, merged_ids, older, texts)
        work.spent.lines += len(owners)
        work.owners[version.seal_id] = owners
        older = version
    await _carry_owners(work, successive, older, texts)


async def _carry_owners(
    work: _Progress, successive: Sequence[_Version], older: _Version | None, texts: Mapping[bytes, bytes]
) -> _Version | None:
    """Compute the line owners of successive versions, from old to new. `successive`: versions that were each
    made from the one before, without a merge. `older`: the version before them, whose owners are known.
    Returns the newest version, whose owners are then known too."""
    if older is None or not successive:
        return older
    texts_by_seal = [(version.seal_id, texts[version.digest]) for version in successive]
    owners = work.owners[older.seal_id]
    view, text = work.view, texts[older.digest]
    size = len(text) + sum(len(following) for _, following in texts_by_seal)
    owners, lines_compared = await view.node.workers.run(
        view.payer, size, heavy.advance_owners, owners, text, texts_by_seal
    )
    work.owners[successive[-1].seal_id] = owners
    work.spent.lines += lines_compared
    return successive[-1]


async def _find_branched_owners(
    work: _Progress,
    version: _Version,
    parent_ids: list[str],
    merged: list[str],
    older: _Version | None,
    texts: Mapping[bytes, bytes],
) -> Owners:
    """Find the owner of each line of a version that was made by a merge, or that is the first at this path.
    `merged`: the seals that were merged into its seal. `older`: the version before it, if there is one."""
    async with work.view.read() as tx:
        parents = await seal_rows(tx, work.view, parent_ids) if parent_ids else []
        sides = await seal_rows(tx, work.view, merged) if merged else []
    merged_files = await _read_merged_files(work, [*parents[1:], *sides])
    for parent_id, file in merged_files:
        if file.digest == version.digest:
            return await _find_owners(work, parent_id, file)  # taken over whole
    if older is None and parents and not merged_files:
        moved = await _follow_move(work, version, parents[0])
        if moved is not None:
            owners, text = moved
            if text is None:
                return owners
            new = texts[version.digest]
            return await _inherit_owners(work, version.seal_id, new, [(owners, text)])
    before = [(work.owners[older.seal_id], texts[older.digest])] if older else []
    for parent_id, file in merged_files:
        text = (await _read_texts(work, {file.digest}))[file.digest]
        before.append((await _find_owners(work, parent_id, file), text))
    return await _inherit_owners(work, version.seal_id, texts[version.digest], before)


async def _read_merged_files(work: _Progress, merged_seals: list[SealRow]) -> list[tuple[str, TreeEntry]]:
    """Read the file at the path in each merged seal. Returns (seal id, file) for each seal where the file is
    text."""
    files = []
    for row in merged_seals:
        file = (await sealed.find_entries(work.view, row.root, [work.path])).get(work.path)
        if file is not None and file.kind == "text" and file.size <= DIFF_BYTES:
            files.append((row.id, file))
    return files


async def _follow_move(
    work: _Progress, version: _Version, parent: SealRow
) -> tuple[Owners, bytes | None] | None:
    """If the seal of this version moved a file here from another path, find the line owners under the old
    path. Returns (owners, old text), both from the tree of `parent`; the text is None if the move left it
    unchanged. Returns None if the seal moved no file here."""
    async with work.view.read() as tx:
        removed_paths = [row[0] for row in await tx.all(rows.REMOVED, seal_id=version.seal_id)]
        own = (await seal_rows(tx, work.view, [version.seal_id]))[0]
    if not removed_paths or not version.size:
        return None
    source = await renames.find_source(work.view, own, parent, work.path)
    if source is None or source[1].kind != "text":
        return None
    path, file = source
    below = _Progress(work.view, path, work.spent, work.first_parent, depth=work.depth)
    owners = await _find_owners(below, parent.id, file)
    if file.digest == version.digest:
        return owners, None
    return owners, (await _read_texts(below, {file.digest}))[file.digest]


async def _inherit_owners(
    work: _Progress, seal_id: str, text: bytes, before: Sequence[tuple[Owners, bytes]]
) -> Owners:
    size = len(text) + sum(len(old) for _, old in before)
    view = work.view
    return await view.node.workers.run(view.payer, size, heavy.inherit_owners, seal_id, text, before)


async def _read_texts(work: _Progress, digests: set[bytes]) -> dict[bytes, bytes]:
    texts = await work.view.node.objects.read_many(sorted(digests), work.view.repo.id)
    if any(kind_of(data) != "text" for data in texts.values()):
        raise NotText(f"{work.path} is bytes; blame reads text")
    return texts


async def _load_cached(work: _Progress, versions: list[_Version]) -> int | None:
    """Load the cached line owners of the newest version that has some. Returns the index of this version in
    `versions`, or None."""
    ids = [version.seal_id for version in versions]
    cached = await blame_cache.load_newest(work.view, work.path, ids, first_parent=work.first_parent)
    if cached is None:
        return None
    at, owners = cached
    work.owners[ids[at]] = owners
    return at


async def _cache_owners(work: _Progress, version: _Version | None) -> None:
    work.unkept = 0
    if version is not None:
        owners = work.owners[version.seal_id]
        await blame_cache.store(work.view, work.path, version.seal_id, owners, first_parent=work.first_parent)
