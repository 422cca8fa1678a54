"""Reads a sealed tree, limited to the paths that the caller may see. Every route that shows content uses this
module.

Paths that are missing, hidden or of another kind get the same answer: not found.
"""

from __future__ import annotations

import asyncio
import contextlib
import re
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass
from operator import attrgetter

from localstore.core import seal as kernel
from localstore.core import tree
from localstore.core.encoding import is_hex_digest
from localstore.core.errors import NotFound
from localstore.core.model.limits import MIB
from localstore.core.tree import Child, TreeEntry
from localstore.core.tree.directory import decode, join
from localstore.core.tree.policy import Policy
from localstore.core.tree.read import Change
from relay.base.batches import split_batches
from relay.caller import View
from relay.db import history as walks
from relay.db import repo as repos
from relay.db import seal as seals
from relay.db.collaboration import proposal as proposals
from relay.db.engine.database import Tx
from relay.db.seal import SealRow
from relay.domain.storage import chunked
from relay.http.buffers import BEGUN_PATIENCE
from relay.memory import trees

BATCH_BYTES = 1 * MIB  # file content read at once while many files are streamed
BATCH_FILES = 256
TURN = 1000  # entries of a walk that one turn goes through
WALKED = 5e-6  # seconds of the processor that an entry of a walk takes, about
AHEAD_BYTES = 4 * MIB  # of directories that are read together
DECODED = 8  # bytes in memory for each byte of a directory
AHEAD = 64  # next entries of the walk that are searched for directories to read together

_size = attrgetter("size")
_PROPOSAL = re.compile(r"pr:[1-9][0-9]{0,17}")


async def seal(view: View, seal_id: str, tx: Tx | None = None) -> SealRow:
    """The seal with this full id. Also finds a seal of a deleted branch, because seals stay readable by
    id."""
    if not is_hex_digest(seal_id):
        raise NotFound
    if tx is None:
        async with view.read(near=True) as own:
            return await seal(view, seal_id, own)
    row = await tx.one(seals.MANY, repo_id=view.repo.id, ids=[seal_id])
    if row is None:
        raise NotFound
    return seals.to_row(row)


def shows_all(view: View) -> bool:
    """Whether the caller sees every path of every tree. If not, trees are verified by proofs and the tree key
    stays secret, because the key would let the caller guess hidden names from their digests."""
    return view.policy is None and not view.repo.partial


async def tree_key(view: View, row: SealRow) -> tuple[str, bytes]:
    """The key that salts the tree of a seal, as (id, bytes). Reveal it only to a caller who sees all paths
    (`shows_all`)."""
    key_id = kernel.decode(row.payload).tree_key_id
    if key_id == view.repo.tree_key_id:
        return key_id, view.repo.tree_key
    key_row = await view.node.db.lookup(repos.KEY, repo_id=view.repo.id, key_id=key_id)
    if key_row is None:
        raise NotFound
    return key_id, bytes(key_row[0])


async def find_head(view: View, tx: Tx, name: str) -> str | None:
    """Find the seal that `name` means: a branch, a tag, `pr:N` (the newest version of proposal N) or a full
    seal id. Returns its id, or None for a branch without seals. Raises NotFound for any other name."""
    if (version := await of_proposal(view, tx, name)) is not None:
        return version
    ref = await tx.one(walks.REFS_NAMED, repo_id=view.repo.id, name=name)
    if ref is not None:
        at: str | None = ref[1]
        return at
    return (await seal(view, name, tx)).id


async def of_proposal(view: View, tx: Tx, name: str) -> str | None:
    """The head of the newest version of proposal N if `name` is `pr:N`, else None. `pr:N` is not a valid
    branch name. Use the result only for reading."""
    if not _PROPOSAL.fullmatch(name):
        return None
    at: str | None = await tx.value(proposals.HEAD_OF, of_repo=view.repo.id, of_number=int(name[3:]))
    return at


def require_plaintext(view: View) -> None:
    """Raise NotFound for an end-to-end encrypted repository, because the relay cannot read its trees."""
    if view.repo.class_ == "private_e2ee":
        raise NotFound


# --- trees


def _loader(view: View) -> Callable[[list[bytes]], Awaitable[dict[bytes, bytes]]]:
    require_plaintext(view)
    return view.node.objects.read_many


async def find_entry(view: View, root: bytes, path: str) -> TreeEntry:
    """Find the file at `path`. Raises PathInvalid if `path` cannot be a path, and NotFound if the file is
    missing or hidden."""
    tree.check_path(path)
    named = await find_entries(view, root, [path])
    if path not in named:
        raise NotFound
    return named[path]


async def find_entries(view: View, root: bytes, paths: Iterable[str]) -> dict[str, TreeEntry]:
    """Find the files among `paths` that the caller sees. Returns them by path."""
    visible = [path for path in paths if view.sees(path)]
    return await trees.drive(tree.lookup(root, visible), _loader(view), len(visible))


async def has_path(view: View, root: bytes, path: str) -> bool:
    """Whether the caller sees a file or a directory at `path`."""
    above, _, name = path.rpartition("/")
    try:
        return any(child.name == name for child in await list_children(view, root, above))
    except NotFound:
        return False


async def find_at(view: View, root: bytes, path: str) -> tuple[str, bytes] | None:
    """The (kind, digest) of the file or directory at `path`; None if there is none. Call this only if the
    caller sees everything below the path."""
    above, _, name = path.rpartition("/")
    try:
        listed = await trees.drive(tree.list_directory(root, above), _loader(view))
    except NotFound:
        return None
    return next(((child.kind, child.digest) for child in listed if child.name == name), None)


async def list_children(view: View, root: bytes, path: str) -> list[Child]:
    """List the children of the directory at `path` that the caller sees; "" is the root. A subdirectory that
    is partly visible has the size of its visible part. Raises NotFound for a directory without visible
    content."""
    if path:
        tree.check_path(path)
    listed = await trees.drive(tree.list_directory(root, path), _loader(view))
    if view.policy is None:
        return listed
    seen = [
        visible
        for child in listed
        if (visible := await _filter_child(view, view.policy, path, child)) is not None
    ]
    if path and not seen:
        raise NotFound
    return seen


async def _filter_child(view: View, policy: Policy, above: str, child: Child) -> Child | None:
    path = join(above, child.name)
    if child.kind != "dir":
        return child if policy.sees(path) else None
    if policy.sees_all_below(path):
        return child
    size, some = 0, False
    async for _, file in _walk_in_turns(view, path, [child]):
        size, some = size + file.size, True
    return Child(child.name, child.kind, child.digest, size) if some else None


async def find_changes(view: View, old: bytes | None, new: bytes | None) -> dict[str, Change]:
    """Find the visible differences between two trees. Returns (old file, new file) by path, with None where
    there is no file. A file that moved from or to a hidden path appears as created or deleted."""
    differences = await trees.drive(tree.diff(old, new), _loader(view))
    return (
        differences
        if view.policy is None
        else {path: change for path, change in differences.items() if view.sees(path)}
    )


async def changes_in_turn(
    view: View, old: bytes | None, new: bytes | None, *, paid: bool = False
) -> dict[str, Change]:
    """Find the visible differences between two trees, as `find_changes` does. Waits for the caller's turn,
    and counts the CPU time on the caller's budget. Use it for answers in which the caller chooses the trees.
    `paid`: the caller has already waited for the budget."""
    async with view.node.streams.turn(view.payer, view.lease, paid=paid) as step:
        with trees.work_on_trees() as work:
            differences = await find_changes(view, old, new)
        step.seconds += work.seconds
        step.count(len(differences))
    return differences


async def walk_files(
    view: View, root: bytes, prefix: str = ""
) -> AsyncGenerator[tuple[str, TreeEntry], None]:
    """Yields (path, file) of every file at or below `prefix` that the caller sees, sorted by path. Each part
    of the tree is read in a turn of the caller, and its CPU time counts on the caller's budget."""
    above, _, name = prefix.rpartition("/")
    require_plaintext(view)
    if not prefix:
        top = [Child("", "dir", root, 0)] if root != tree.EMPTY_ROOT else []
    else:
        top = [child for child in await list_children(view, root, above) if child.name == name]
        if not top:
            raise NotFound
    async for item in _walk_in_turns(view, prefix, top):
        yield item


async def _walk_in_turns(
    view: View, prefix: str, top: Sequence[Child]
) -> AsyncGenerator[tuple[str, TreeEntry], None]:
    """Yields (path, file) for the visible files below `prefix`. Each part of them is read in one turn of the
    caller, and yielded after that turn. `top`: the children of the directory at `prefix`."""
    if not top:
        return
    async with contextlib.aclosing(_walk(view, prefix, top)) as entries:
        more = True
        while more:
            turn = view.lease.turn
            if turn is not None:  # the caller's, who counts the files that the walk brings
                files, visited = await _take(entries)
                view.lease.walked += (visited - len(files)) * WALKED
                if not files:  # the caller cannot end its turn
                    turn.release()
                    await asyncio.sleep(0)
                    await turn.take_again()
            else:
                async with view.node.streams.turn(view.payer, view.lease) as step:
                    files, visited = await _take(entries)
                    step.seconds += visited * WALKED
            more = visited == TURN
            for item in files:
                yield item


async def _take(
    entries: AsyncIterator[tuple[str, TreeEntry] | None],
) -> tuple[list[tuple[str, TreeEntry]], int]:
    """Take the next entries of a walk through a tree, TURN entries at most. Returns (files, number of
    entries). The number includes directories and hidden entries."""
    files, visited = [], 0
    async for item in entries:
        if item is not None:
            files.append(item)
        visited += 1
        if visited == TURN:
            break
    return files, visited


async def _walk(
    view: View, prefix: str, top: Iterable[Child]
) -> AsyncGenerator[tuple[str, TreeEntry] | None, None]:
    """Yields (path, file) for each visible file below `prefix`, and None for each hidden entry and each
    directory. `top`: the children of the directory at `prefix`. In memory are only the directories above the
    current file, and some that are needed next."""
    policy = view.policy
    stack = [(prefix, child) for child in top]
    reader = DirectoryReader(view)
    while stack:
        path, child = stack.pop()
        if child.kind != "dir":
            yield (path, child.entry) if view.sees(path) else None
            continue
        ahead = (child.digest for _, child in stack[-AHEAD:] if child.kind == "dir")
        raw = await reader.read(child.digest, ahead)
        below = (
            _list_reversed(raw) if len(raw) <= trees.LARGE else await asyncio.to_thread(_list_reversed, raw)
        )
        ways = [(join(path, inner.name), inner) for inner in below]
        visible = ways if policy is None else [way for way in ways if policy.may_see_below(way[0])]
        stack += visible
        for _ in range(1 + len(ways) - len(visible)):
            yield None


class DirectoryReader:
    """Reads the directories of a walk through a tree, several at once. Large ones count as memory of the
    caller's request until the request ends."""

    def __init__(self, view: View) -> None:
        self._view = view
        self._ready: dict[bytes, bytes] = {}
        self._held = 0

    async def read(self, digest: bytes, ahead: Iterable[bytes]) -> bytes:
        """Read a directory. `ahead`: the directories that are needed next. If the directory must be fetched,
        some of them are fetched with it."""
        if digest not in self._ready:
            self._ready = await _read_directories(self._view, digest, ahead)
        raw = self._ready[digest]
        needed = len(raw) * DECODED if len(raw) > trees.LARGE else 0
        if needed > self._held:
            self._held += await self._view.lease.wait(needed - self._held, BEGUN_PATIENCE)
        return raw


async def _read_directories(view: View, first: bytes, ahead: Iterable[bytes]) -> dict[bytes, bytes]:
    """Read the directory `first` and some of the directories `ahead`. These are read only as far as they fit
    into a common limit, small ones first. Returns their bytes by digest."""
    store = view.node.objects
    located = await store.locate(list(dict.fromkeys([first, *ahead])))
    if first not in located:
        raise NotFound
    rest = sorted((location for digest, location in located.items() if digest != first), key=_size)
    part = next(split_batches([located[first], *rest], AHEAD_BYTES, _size))
    return await store.read_located(part)


def _list_reversed(raw: bytes) -> list[Child]:
    """List the children of a directory object in descending order of paths."""
    return sorted(decode(raw).children, key=_path_order, reverse=True)


def _path_order(child: Child) -> str:
    """The sort key that sorts files and directories of one parent as their full paths: `a.txt` comes before
    `a/b`."""
    return child.name + "/" if child.kind == "dir" else child.name


# --- bytes


async def read_content(view: View, file: TreeEntry) -> bytes:
    """Read all bytes of a text or a small binary file. Neither is ever larger than a frame."""
    return await view.node.objects.read(file.digest, view.repo.id)


@dataclass(slots=True, frozen=True)
class Piece:
    """Some bytes of the file at index `at` of a list of files. `first`, `last`: whether they are the file's
    first or last bytes."""

    at: int
    data: bytes
    first: bool
    last: bool


async def read_contents(view: View, files: Sequence[TreeEntry]) -> AsyncGenerator[Piece, None]:
    """Yields the bytes of many files in order. Small files are read in batches and large ones in pieces. The
    bytes in memory count as memory of the caller's request. Raises Unavailable if memory does not become free
    in time."""
    batch: list[int] = []
    weight = 0
    for at, file in enumerate(files):
        large = file.kind == "chunked"
        if batch and (large or weight + file.size > BATCH_BYTES or len(batch) >= BATCH_FILES):
            async for piece in _read(view, files, batch):
                yield piece
            batch, weight = [], 0
        if large:
            async for piece in _read_large(view, at, file):
                yield piece
        else:
            batch.append(at)
            weight += file.size
    async for piece in _read(view, files, batch):
        yield piece


async def _read(view: View, files: Sequence[TreeEntry], batch: list[int]) -> AsyncIterator[Piece]:
    if not batch:
        return
    held = await view.lease.wait(sum(files[at].size for at in batch), BEGUN_PATIENCE)
    try:
        digests = [files[at].digest for at in batch]
        by_digest = await view.node.objects.read_many(digests, view.repo.id, heavy=True)
        for at in batch:
            yield Piece(at, by_digest[files[at].digest], True, True)
    finally:
        view.lease.give_back(held)


async def _read_large(view: View, at: int, file: TreeEntry) -> AsyncIterator[Piece]:
    remaining = file.size
    async for data in chunked.read(view, file.digest):
        yield Piece(at, data, remaining == file.size, remaining == len(data))
        remaining -= len(data)
