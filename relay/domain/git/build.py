"""Builds the bare git repository of a repository from its seals.

Seals are exported in packs of some MiB, each seal after its parents. A seal is recorded once the pack with
its last object is complete, so that an interrupted build continues with the next seal. Exporting a seal takes
as much work as the seal changed: only its blobs and the directories above them are written. Other directories
are read from the packs when needed.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import IO
from urllib.parse import urlsplit

from localstore.core import seal as kernel
from localstore.core.errors import NoSpace, TooLarge
from localstore.core.git import objects
from localstore.core.git.objects import EMPTY_TREE
from localstore.core.git.pack import GitPackWriter
from localstore.core.git.trees import Trees
from localstore.core.model.limits import MIB, in_words
from localstore.core.tree import TreeEntry
from relay.base.batches import split_batches
from relay.base.logs import logger
from relay.caller import View
from relay.db import history as walks
from relay.db import seal as seals
from relay.db.engine.database import Tx
from relay.db.seal import SealRow
from relay.domain.git import process
from relay.domain.git.cache import Cache, Exported, Ref, fingerprint_of, without_clashes
from relay.domain.git.rows import reading as rows
from relay.domain.history import sealed
from relay.domain.storage import chunked

BATCH = 100  # seals whose rows are read together
GROUP = 4 * MIB, 500  # bytes and blobs of a step, in which other work of the process waits for moments only
PACK_BYTES = 16 * MIB  # of objects, before compression, after which a pack ends
STARTS, NEAR, FAR = 500, 20, 5000  # of a walk: seals it begins with, and how many generations it looks at
REMEMBERED = 100_000  # ids of blobs
LOOSE = 16  # packs that are worth joining
PAUSE = 0.1  # seconds between two looks whether another process has finished
JOIN_SECONDS = 1200.0  # that joining packs may take
SECONDS = 150.0  # that one job builds; what is left is for the next one


class Unfinished(Exception):
    """Raised if the time for one run of building is over before all seals are exported. Seals exported so far
    stay recorded."""


async def refs_of(tx: Tx, view: View) -> list[Ref]:
    """The branches and tags to export to git, sorted by name. Those without a seal are left out, and those
    whose names git cannot have together (`without_clashes`)."""
    refs = [Ref(*row) for row in await tx.all(rows.REFS, repo_id=view.repo.id)]
    return without_clashes(refs, view.repo.default_branch)


async def build(view: View, cache: Cache, most: int, *, seconds: float = SECONDS) -> int:
    """Bring the bare repository to the current refs. If another process is building it, waits for that
    process first. Returns the bytes of the packs that were added. Raises TooLarge if the repository would
    exceed `most` bytes, and Unfinished after `seconds`."""
    until = time.monotonic() + seconds
    while True:
        with cache.building() as lock:
            if lock is not None:
                return await _build(view, cache, most, lock, until)
        if time.monotonic() > until:
            raise Unfinished("another process is building")
        await asyncio.sleep(PAUSE)


async def _build(view: View, cache: Cache, most: int, lock: int, until: float) -> int:
    await process.in_build(cache.prepare)
    builder = _Builder(view, cache, lock, most, until)
    try:
        await builder.run()
    finally:
        await process.in_build(builder.close)
    if await process.in_build(_is_scattered, cache):
        await _join(view, cache, lock)
    return builder.added


def _is_scattered(cache: Cache) -> bool:
    """Whether to join the packs into one. It pays if many packs were added since the last time, or if the
    added packs have most of the bytes."""
    sizes, joined = cache.pack_sizes(), cache.read_joined()
    fresh = [size for name, size in sizes.items() if name not in joined]
    return len(fresh) > LOOSE or (sum(fresh) > MIB and 2 * sum(fresh) > sum(sizes.values()))


async def _join(view: View, cache: Cache, lock: int) -> None:
    """Join the packs of the cache into one, because git then reads faster. If the disk is nearly full, this
    is skipped."""
    try:
        view.node.reserve.require()
    except NoSpace as error:
        logger().warning("git packs are not joined", repo=cache.repo_id, why=error.detail)
        return
    await process.in_build(_repack, cache, lock)


def _repack(cache: Cache, lock: int) -> None:
    """Join the packs into one, in which git stores similar objects as differences from each other. Objects
    that no branch or tag reaches are kept, because a seal stays readable by its id."""
    words = ("-C", str(cache.folder), "repack", "-a", "-d", "-k", "-q")
    # Without -f git looks for deltas between packs alone: it takes those of one pack to have been compared.
    with contextlib.suppress(OSError):  # it is logged
        process.run(*words, "-f", seconds=JOIN_SECONDS, locks=(lock,))
    cache.mark_joined()  # also if it failed: the next build would fail in the same way


@dataclass(slots=True)
class _SealToExport:
    """A seal to export: its row and payload, its parents in git, and its changes by path. A change is None if
    the file was deleted."""

    row: SealRow
    payload: kernel.SealPayload
    parents: tuple[str, ...]
    changes: dict[str, TreeEntry | None] = field(default_factory=dict)


class _Builder:
    """One run that exports seals as git objects into the bare repository. `lock`: the descriptor of the
    builder's lock. `most`: bytes that the repository may have. `until`: when to stop."""

    def __init__(self, view: View, cache: Cache, lock: int, most: int, until: float) -> None:
        self._view, self._cache, self._lock, self._most, self._until = view, cache, lock, most, until
        self._ids: OrderedDict[bytes, bytes] = OrderedDict()
        self._persons: dict[str, str] = {}
        self._done: dict[str, Exported] = {}
        self._unrecorded: list[tuple[str, Exported]] = []
        self._trees = Trees(self._load, self._add_tree)
        self._fresh: dict[bytes, bytes] = {}  # trees of the open pack, which git cannot read yet
        self._file: IO[bytes] | None = None
        self._pack: GitPackWriter | None = None
        self._reader: process.ObjectReader | None = None
        self._size = self.added = 0

    async def run(self) -> None:
        view, cache = self._view, self._cache
        self._done = await process.in_build(cache.read_exported)
        self._size = sum((await process.in_build(cache.pack_sizes)).values())
        async with view.read(snapshot=True) as tx:
            refs = await refs_of(tx, view)
            graph = await self._graph(tx, [ref.head for ref in refs])
        order = list(_parents_first(graph))
        for at in range(0, len(order), BATCH):
            await self._export(order[at : at + BATCH], graph)
            if time.monotonic() > self._until:
                await process.in_build(self._end_pack)
                raise Unfinished(f"{len(order) - at - BATCH} seals are left")
        await process.in_build(self._end_pack)
        commits = [self._done[ref.head].commit for ref in refs]
        await process.in_build(self._require_all, commits)
        branch = view.repo.default_branch
        await process.in_build(cache.write_refs, branch, refs, commits, fingerprint_of(branch, refs))

    def close(self) -> None:
        if self._reader is not None:
            self._reader.close()
        if self._file is not None:
            self._file.close()

    # --- what is to be exported

    async def _graph(self, tx: Tx, heads: Iterable[str]) -> dict[str, tuple[str, ...]]:
        """Find the seals in the history of `heads` that are not exported yet. Returns their parents in git,
        by seal id."""
        graph: dict[str, tuple[str, ...]] = {}
        queue = list(dict.fromkeys(heads))
        window = NEAR
        while queue:
            part = [
                seal_id for seal_id in queue[:STARTS] if seal_id not in graph and seal_id not in self._done
            ]
            queue = queue[STARTS:]
            if not part:
                continue
            parents = await self._parents(tx, part, window)
            graph |= parents
            window = FAR
            queue += [parent for several in parents.values() for parent in several if parent not in graph]
        return graph

    async def _parents(self, tx: Tx, ids: list[str], window: int) -> dict[str, tuple[str, ...]]:
        """Find the git parents of these seals and of their ancestors, up to `window` generations back. A
        seal's generation is one more than the highest of its parents'. Returns the parents by seal id."""
        top = await tx.value(walks.TOP_GENERATION, ids=ids)
        parents_of: dict[str, list[str]] = {}
        for seal_id, _, parent in await tx.all(walks.GRAPH, ids=ids, floor=max(0, top - window)):
            if seal_id not in self._done:
                parents_of.setdefault(seal_id, []).extend([parent] if parent is not None else [])
        merged = (
            sorted({row[0] for row in await tx.all(seals.SOURCES, ids=list(parents_of))})
            if parents_of
            else []
        )
        for part in split_batches(merged, BATCH, lambda _: 1):
            await self._add_sources(tx, part, parents_of)
        return {seal_id: tuple(parents) for seal_id, parents in parents_of.items()}

    async def _add_sources(self, tx: Tx, ids: list[str], parents_of: dict[str, list[str]]) -> None:
        """Add to the git parents of these seals the seals that were merged into them. They come in the order
        in which the seal names them. Merged seals that the repository lacks, as in a fork, are left out.
        `parents_of`: the parents by seal id."""
        named: dict[str, list[str]] = {}
        for row in await tx.all(seals.MANY, repo_id=self._view.repo.id, ids=ids):
            merge = kernel.decode(seals.to_row(row).payload).provenance.merge
            if merge is not None and merge.strategy in kernel.LINKED:
                named[row[0]] = merge.sources
        every = sorted({source for sources in named.values() for source in sources})
        if not every:
            return
        held = {row[0] for row in await tx.all(seals.HEADS, repo_id=self._view.repo.id, ids=every)}
        for seal_id, sources in named.items():
            parents_of[seal_id] += [
                source for source in sources if source in held and source not in parents_of[seal_id]
            ]

    # --- exporting

    async def _export(self, ids: list[str], graph: Mapping[str, tuple[str, ...]]) -> None:
        """Export these seals as git objects, in this order. `graph`: their git parents by seal id."""
        async with self._view.read() as tx:
            by_id = {
                row[0]: seals.to_row(row)
                for row in await tx.all(seals.MANY, repo_id=self._view.repo.id, ids=ids)
            }
            changes: dict[str, dict[str, TreeEntry | None]] = {seal_id: {} for seal_id in ids}
            for seal_id, path, kind, digest, size in await tx.all(rows.CHANGES, ids=ids):
                changes[seal_id][path] = TreeEntry(kind, bytes(digest), size) if kind else None
        await self._read_persons({row.account_id for row in by_id.values()})
        group: list[_SealToExport] = []
        weight = count = 0
        for seal_id in ids:
            row = by_id[seal_id]
            seal = _SealToExport(row, kernel.decode(row.payload), graph[seal_id], changes[seal_id])
            if not seal.payload.parents:
                seal.changes = {path: file async for path, file in sealed.walk_files(self._view, row.root)}
            sizes = [entry.size for entry in seal.changes.values() if entry is not None]
            weight, count = weight + sum(sizes), count + len(sizes)
            group.append(seal)
            if weight > GROUP[0] or count > GROUP[1]:
                await self._write(group)
                group, weight, count = [], 0, 0
        await self._write(group)

    async def _write(self, group: Sequence[_SealToExport]) -> None:
        """Write the git objects of a group of seals."""
        files = {
            entry.digest: entry
            for seal in group
            for entry in seal.changes.values()
            if entry is not None and not self._is_written(entry.digest)
        }
        ids: dict[bytes, bytes] = {}
        small = [file for file in files.values() if file.kind != "chunked"]
        for part in split_batches(small, GROUP[0], lambda file: file.size):
            data = await self._view.node.objects.read_many(
                [file.digest for file in part], self._view.repo.id, cache=False, heavy=True
            )
            ids |= await process.in_build(self._add_blobs, data)
        for large in files.values():
            if large.kind == "chunked":
                ids[large.digest] = await self._add_large(large)
        await process.in_build(self._add_commits, group, ids)

    def _is_written(self, digest: bytes) -> bool:
        if digest not in self._ids:
            return False
        self._ids.move_to_end(digest)
        return True

    def _remember(self, ids: Mapping[bytes, bytes]) -> None:
        self._ids |= ids
        while len(self._ids) > REMEMBERED:
            self._ids.popitem(last=False)

    def _add_blobs(self, data: Mapping[bytes, bytes]) -> dict[bytes, bytes]:
        ids = {digest: self._writer().add("blob", content) for digest, content in data.items()}
        self._require_room()
        return ids

    async def _add_large(self, file: TreeEntry) -> bytes:
        """Write a large file into a separate pack, a piece at a time. Returns its git id."""
        self._require_room(file.size)
        opened = await process.in_build(self._cache.new_pack)
        with opened:
            writer = GitPackWriter(opened.write)
            blob = writer.begin(file.size)
            async for piece in chunked.read(self._view, file.digest):
                await process.in_build(blob.feed, piece)
            blob_id = await process.in_build(blob.finish)
            self._count_bytes(await process.in_build(self._cache.add_pack, opened, writer.entries))
        return blob_id

    def _add_commits(self, group: Sequence[_SealToExport], ids: Mapping[bytes, bytes]) -> None:
        """Write the trees and commits of seals whose blobs are already written. `ids`: git's ids of the new
        blobs, by digest."""
        for seal in group:
            base = self._done[seal.payload.parents[0]].tree if seal.payload.parents else EMPTY_TREE
            changes = {
                path: None if entry is None else ids.get(entry.digest) or self._ids[entry.digest]
                for path, entry in seal.changes.items()
            }
            tree = self._trees.update(base, changes)
            parents = [self._done[parent].commit for parent in seal.parents]
            commit = self._writer().add("commit", self._commit(seal, tree, parents))
            exported = Exported(commit, tree)
            self._done[seal.row.id] = exported
            self._unrecorded.append((seal.row.id, exported))
        self._remember(ids)
        writer = self._writer()
        self._require_room()
        if writer.raw > PACK_BYTES:
            self._end_pack()

    def _commit(self, seal: _SealToExport, tree: bytes, parents: Sequence[bytes]) -> bytes:
        seconds = seal.row.created_at // 1000
        person = self._persons[seal.row.account_id]
        named_author, committer = seal.payload.provenance.author, objects.format_signature(person, seconds)
        author = objects.author(named_author, seconds) if named_author else committer
        return objects.commit(tree, parents, author, committer, seal.payload.message)

    async def _read_persons(self, accounts: set[str]) -> None:
        """Read the names that these accounts have in commits. An account without such a name gets one now,
        permanently."""
        unknown = sorted(accounts - self._persons.keys())
        if not unknown:
            return
        db = self._view.node.db
        async with db.read() as tx:
            self._persons |= dict(map(tuple, await tx.all(rows.PERSONS, accounts=unknown)))
            handles = await tx.all(rows.HANDLES, accounts=unknown)
        host = urlsplit(self._view.node.config.public_url).hostname or "localhost"
        new = [
            {"account_id": account, "person": objects.person(handle or account, f"{account}@{host}")}
            for account, handle in handles
            if account not in self._persons
        ]
        if new:
            async with db.write("git persons") as tx:
                await tx.many(rows.KEEP_PERSON, new)
                self._persons |= dict(map(tuple, await tx.all(rows.PERSONS, accounts=unknown)))

    # --- packs, on the threads of building

    def _writer(self) -> GitPackWriter:
        if self._pack is None:
            self._file = self._cache.new_pack()
            self._pack = GitPackWriter(self._file.write)
        return self._pack

    def _end_pack(self) -> None:
        """Complete the pack that is being written, and record the seals whose objects are now all in
        packs."""
        if self._file is not None and self._pack is not None:
            self._count_bytes(self._cache.add_pack(self._file, self._pack.entries))
            self._file = self._pack = None
        if self._unrecorded:
            self._cache.add_seals(self._unrecorded)
        self._fresh.clear()
        self._unrecorded = []

    def _count_bytes(self, size: int) -> None:
        self._size += size
        self.added += size

    def _add_tree(self, tree: bytes, raw: bytes) -> None:
        writer = self._writer()
        if tree not in writer:
            writer.add("tree", raw)
            self._fresh[tree] = raw

    def _load(self, tree: bytes) -> bytes:
        raw = self._fresh.get(tree)
        if raw is None:
            raw = self._objects().read(tree)
        if raw is None:
            raise self._drop_broken()
        return raw

    def _objects(self) -> process.ObjectReader:
        if self._reader is None:
            self._reader = process.ObjectReader(self._cache.folder, (self._lock,))
        return self._reader

    def _require_all(self, commits: Sequence[bytes]) -> None:
        """Raise an error unless git finds the commits that the refs will point to."""
        for commit in dict.fromkeys(commits):
            if self._objects().read(commit) is None:
                raise self._drop_broken()

    def _drop_broken(self) -> Exception:
        """Delete a bare repository that lacks an object, for example after a power cut. The next run rebuilds
        it. Returns the error to raise."""
        self._cache.remove()
        return OSError(f"the packs of {self._cache.folder} lack an object; they are built anew")

    def _require_room(self, more: int = 0) -> None:
        self._view.node.reserve.require()
        size = self._size + more + (self._pack.size if self._pack is not None else 0)
        if size > self._most:
            raise TooLarge(
                f"this repository has more than the {in_words(self._most)} that git may read here; "
                "clone it with svc"
            )


def _parents_first(graph: Mapping[str, tuple[str, ...]]) -> Iterator[str]:
    """Yields the seals of the graph, each after its parents. If a seal has several parents, all ancestors of
    one parent come before those of the next parent."""
    done: set[str] = set()
    for start in graph:
        stack = [(start, iter(graph[start]))]
        while stack:
            seal_id, parents = stack[-1]
            parent = next(
                (candidate for candidate in parents if candidate in graph and candidate not in done), None
            )
            if parent is not None:
                stack.append((parent, iter(graph[parent])))
                continue
            stack.pop()
            if seal_id not in done:
                done.add(seal_id)
                yield seal_id
