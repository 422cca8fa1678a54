"""Sealed trees for callers with hidden paths. Makes proofs of the trees, and refuses to send files that these
callers may not see.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Collection

from localstore.core import tree
from localstore.core.encoding import digest as digest_of
from localstore.core.errors import NotFound
from localstore.core.storage import chunks as kernel
from localstore.core.tree.build import parent_of, with_ancestors
from localstore.core.tree.directory import Kind, join
from localstore.core.tree.drive import Steps
from localstore.core.tree.proof import frame_directory
from relay.caller import View
from relay.domain.history import files, sealed
from relay.domain.storage import chunked
from relay.domain.storage.chunked import BYTES
from relay.http.buffers import BEGUN_PATIENCE
from relay.http.routing import Reply
from relay.memory import trees
from relay.memory.named import Key, Named
from relay.memory.streams import Step

AHEAD = 64  # next directories that are read together
SLICE = 0.02  # seconds of the processor that one turn takes, about
DIRECTORIES_AT_ONCE, DIRECTORY_BYTES = 10_000, 200  # visible ones for which memory is reserved; bytes of one
NAMED_MOST = 500_000  # files of a tree whose digests are kept between requests
NAMED_AT_ONCE, NAMED_BYTES = 10_000, 130  # digests for which memory is reserved together; bytes of one
Visible = Callable[[str, Kind], bool]


async def proof(view: View, sha: str) -> Reply:
    """The directories of a seal that the caller sees, for verifying its tree

    Hidden entries appear as digests only. The salts of the visible entries are included. A whole view gets
    all directories that the repository has.
    """
    row = await sealed.seal(view, sha)
    sealed.require_plaintext(view)
    view.node.streams.require(view.payer)
    visible = await _visibility_of(view, row.root)
    _, key = await sealed.tree_key(view, row)
    headers = {"cache-control": files.cache_control_of(view)}
    return Reply(stream=_Proof(view, row.root, key, visible).stream(), content_type=BYTES, headers=headers)


class _Proof:
    """Produces the directories of a tree as the caller sees them, level by level. Each part of a level is
    read when it is the caller's turn."""

    def __init__(self, view: View, root: bytes, key: bytes, visible: Visible) -> None:
        self._view, self._key, self._visible = view, key, visible
        self._reader = sealed.DirectoryReader(view)
        self._digested: dict[bytes, bytes] = {}
        self._level = {"": root} if root != tree.EMPTY_ROOT else {}  # path → digest
        self._below: dict[str, bytes] = {}  # of the next level

    async def stream(self) -> AsyncIterator[bytes]:
        while self._level:
            paths = sorted(self._level, reverse=True)
            while paths:
                async with self._view.node.streams.turn(self._view.payer, self._view.lease) as step:
                    data = await self._frame_some(paths, step)
                yield data
            self._level, self._below = self._below, {}

    async def _frame_some(self, paths: list[str], step: Step) -> bytes:
        """Encode some directories as parts of a proof, as many as one turn has time for. Takes them from the
        end of `paths`."""
        parts: list[bytes] = []
        load = self._view.node.objects.read_many
        with trees.work_on_trees() as work:
            while paths and work.seconds < SLICE:
                path = paths.pop()
                ahead = map(self._level.__getitem__, reversed(paths[-AHEAD:]))
                raw = await self._reader.read(self._level[path], ahead)
                steps = self._frame(path, raw)
                parts.append(await trees.drive(steps, load, len(raw) // trees.ENTRY))
        step.seconds += work.seconds
        return b"".join(parts)

    def _frame(self, path: str, raw: bytes) -> Steps[bytes]:
        """Encode the directory at `path` as a part of a proof, with hidden entries as digests only. Remembers
        its visible subdirectories, which are encoded in the next level. `raw`: the stored directory."""
        directory = tree.decode(raw)
        as_signed = yield from tree.signed_children(directory, self._digested)
        filtered = tree.filter_directory(as_signed, path, self._key, self._visible)
        names = {child.name for child in filtered.children if child.kind == "dir"}
        self._below |= {
            join(path, child.name): child.digest for child in directory.children if child.name in names
        }
        return frame_directory(tree.encode(filtered))


async def _visibility_of(view: View, root: bytes) -> Visible:
    """Make a function that says whether the caller sees a path of this tree. In filtered views, a directory
    without visible files is hidden. In whole views everything is visible, even directories of which the
    repository has only entry digests."""
    if view.policy is None:
        return lambda path, kind: True
    directories: set[str] = set()
    reserved = 0
    async for path, _ in sealed.walk_files(view, root):
        if (above := parent_of(path)) not in directories:
            directories |= with_ancestors([above])
            if len(directories) > reserved:
                await view.lease.wait(DIRECTORIES_AT_ONCE * DIRECTORY_BYTES, BEGUN_PATIENCE)
                reserved += DIRECTORIES_AT_ONCE
    return lambda path, kind: path in directories if kind == "dir" else view.sees(path)


async def require_named(view: View, at: str | None, digests: Collection[bytes]) -> None:
    """Check that the caller may download objects by these digests. A caller who sees all paths may download
    any. Other callers must name a seal `at` whose tree has a visible file, chunk manifest or chunk for each
    digest; otherwise NotFound is raised. Without a seal they get FilteredView."""
    if view.policy is None:
        return
    if at is None:
        view.require_whole()
        return
    row = await sealed.seal(view, at)
    key = (view.repo.id, view.policy.number, row.root)
    named = view.node.named.get(key)
    if named is None:
        named, unnamed = await _collect_named(view, key, digests)
    else:
        unnamed = {digest for digest in digests if digest not in named}
    if len(digests) == 1:
        named.ask_first(*digests)
    for large in list(named.large) if unnamed else ():
        raw = await chunked.read_manifest(view, large.hex())
        listed = await asyncio.to_thread(kernel.decode, raw)
        those = unnamed & {digest_of(raw), *(bytes.fromhex(chunk.blake3) for chunk in listed.chunks)}
        if those:
            named.ask_first(large)
            unnamed -= those
        if not unnamed:
            return
    if unnamed:
        raise NotFound


async def _collect_named(view: View, key: Key, digests: Collection[bytes]) -> tuple[Named, set[bytes]]:
    """Collect the digests of all visible files of a tree. `key`: (repository id, number of the path policy,
    root of the tree). Returns (named, others). `named`: these digests, cached for later requests unless the
    tree is very large. `others`: those of `digests` that no visible file has."""
    view.node.streams.require(view.payer)
    unnamed, large = set(digests), set()
    names: list[bytes] | None = []
    held = 0
    async for _, file in sealed.walk_files(view, key[2]):
        unnamed.discard(file.digest)
        if file.kind == "chunked":
            large.add(file.digest)
        if names is None:
            continue
        if len(names) == NAMED_MOST:
            names = None
        elif len(names) % NAMED_AT_ONCE == 0:
            held += await view.lease.wait(NAMED_AT_ONCE * NAMED_BYTES, BEGUN_PATIENCE)
        if names is not None:
            names.append(file.digest)
    named = await asyncio.to_thread(Named, names or (), sorted(large))
    if names is not None:
        view.node.named.put(key, named)
    view.lease.give_back(held)
    return named, unnamed
