"""What of a sealed tree a View may read. Every route that shows content goes through here.

Paths that are missing, hidden or not of the kind asked for are one answer: not found.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Sequence

from localstore.core import tree
from localstore.core.encoding import is_hex_digest
from localstore.core.errors import NotFound
from localstore.core.limits import MIB
from localstore.core.tree import Child, Directory, Entry
from localstore.core.tree.directory import decode, join
from relay.caller import View
from relay.db import history as walks
from relay.db import seal as seals
from relay.db.database import Tx
from relay.db.seal import SealRow

BATCH_BYTES = 1 * MIB  # file content read at once while many files are streamed
BATCH_FILES = 256


async def seal(view: View, seal_id: str, tx: Tx | None = None) -> SealRow:
    """The seal with this full id. Deleted branches do not matter: seals stay readable by id."""
    require_plaintext(view)
    if not is_hex_digest(seal_id):
        raise NotFound
    if tx is None:
        async with view.read() as own:
            return await seal(view, seal_id, own)
    row = await tx.one(seals.MANY, repo_id=view.repo.id, ids=[seal_id])
    if row is None:
        raise NotFound
    return seals.row(row)


async def head(view: View, tx: Tx, name: str) -> str | None:
    """The seal at a branch, a tag or a full seal id; None for a branch without one. NotFound otherwise."""
    found = await tx.one(walks.REFS_NAMED, repo_id=view.repo.id, name=name)
    if found is not None:
        at: str | None = found[1]
        return at
    return (await seal(view, name, tx)).id


def require_plaintext(view: View) -> None:
    """End-to-end encrypted repositories have no trees that a server could read (contract, AMB-150)."""
    if view.repo.class_ == "private_e2ee":
        raise NotFound


# --- trees


async def entry(view: View, root: bytes, path: str) -> Entry:
    """The file at `path`. PathInvalid for what can be no path."""
    tree.check_path(path)
    found = await entries(view, root, [path])
    if path not in found:
        raise NotFound
    return found[path]


async def entries(view: View, root: bytes, paths: Iterable[str]) -> dict[str, Entry]:
    """The files among `paths`."""
    return await tree.arun(tree.lookup(root, paths), view.node.objects.read_many)


async def children(view: View, root: bytes, path: str) -> list[Child]:
    """The directory at `path`, "" being the root."""
    if path:
        tree.check_path(path)
    return await tree.arun(tree.list_directory(root, path), view.node.objects.read_many)


async def changes(view: View, old: bytes | None, new: bytes | None) -> dict[str, tree.read.Change]:
    """What differs between two trees, by path."""
    return await tree.arun(tree.diff(old, new), view.node.objects.read_many)


async def files(view: View, root: bytes, prefix: str = "") -> AsyncIterator[tuple[str, Entry]]:
    """Every file below `prefix` in the order of their paths; one directory's siblings are in memory."""
    digest: bytes | None = root
    here = ""
    for name in prefix.split("/") if prefix else ():
        found = {child.name: child for child in await children(view, root, here)}.get(name)
        here = join(here, name)
        if found is None:
            raise NotFound
        if found.kind != "dir":
            if here == prefix:
                yield prefix, found.entry
                return
            raise NotFound
        digest = found.digest
    if digest is not None and digest != tree.EMPTY_ROOT:
        async for found_file in _below(view, prefix, digest):
            yield found_file


async def _below(view: View, prefix: str, digest: bytes) -> AsyncIterator[tuple[str, Entry]]:
    """Depth first; the stack holds what is still to come of the directories above."""
    stack: list[tuple[str, Child | Entry | Directory]] = [(prefix, await _directory(view, digest))]
    while stack:
        path, item = stack.pop()
        if isinstance(item, Entry):
            yield path, item
        elif isinstance(item, Directory):
            below = sorted(item.children, key=_path_order, reverse=True)
            stack += [(join(path, one.name), one if one.kind == "dir" else one.entry) for one in below]
        else:
            stack.append((path, await _directory(view, item.digest)))


def _path_order(child: Child) -> str:
    """Files and directories of one parent in the order of the full paths: `a.txt` before `a/b`."""
    return child.name + "/" if child.kind == "dir" else child.name


async def _directory(view: View, digest: bytes) -> Directory:
    return decode(await view.node.objects.read(digest))


# --- bytes


async def content(view: View, file: Entry) -> bytes:
    """All bytes of a file; no object is larger than a frame."""
    return await view.node.objects.read(file.digest, view.repo.id)


async def contents(view: View, digests: Sequence[tuple[bytes, int]]) -> AsyncIterator[tuple[bytes, bytes]]:
    """(digest, bytes) of many objects (digest, size), in order, a batch of them in memory."""
    batch: list[bytes] = []
    weight = 0
    for digest, size in digests:
        if batch and (weight + size > BATCH_BYTES or len(batch) >= BATCH_FILES):
            async for one in _read(view, batch):
                yield one
            batch, weight = [], 0
        batch.append(digest)
        weight += size
    if batch:
        async for one in _read(view, batch):
            yield one


async def _read(view: View, batch: list[bytes]) -> AsyncIterator[tuple[bytes, bytes]]:
    found = await view.node.objects.read_many(batch, view.repo.id)
    for digest in batch:
        yield digest, found[digest]
