"""Checks trees. Every directory below every sealed root must match its digest, and its files must be
stored.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator, Mapping
from operator import attrgetter
from typing import NamedTuple

from localstore.core import tree
from localstore.core.errors import SvcError
from localstore.core.tree import Directory, TreeEntry
from localstore.core.tree.directory import directory_digest, join
from localstore.core.tree.partial import name_of
from relay.base.batches import split_batches
from relay.db.engine.database import Database, Statement, Tx
from relay.db.storage import chunked_file as chunked_files
from relay.db.storage.object import Located
from relay.domain.storage.roots import DIRECTORY_BYTES
from relay.domain.upkeep.rows import verification as rows
from relay.memory.trees import drive
from relay.objects.marks import Marks
from relay.objects.store import ObjectStore

AT_ONCE = 256  # directories


class _Wanted(NamedTuple):
    """A directory to check. Directories with the same digest are checked only once, at one of their paths."""

    digest: bytes
    path: str
    repo_id: str
    keys: tuple[bytes, ...]  # of a root, and below partial directories: one of these
    partial: bool = False  # the root of a partial tree, or below one


async def check(db: Database, store: ObjectStore) -> AsyncIterator[str]:
    async with db.read() as tx:
        keys: dict[str, list[bytes]] = {}
        for repo, key in await tx.all(rows.TREE_KEYS):
            keys.setdefault(repo, []).append(bytes(key))
        roots = [
            _Wanted(bytes(root), "", repo, (bytes(key), *keys.get(repo, ())))
            for root, repo, key in await tx.all(rows.ROOTS)
        ]
        parts = [(bytes(root), repo, bytes(whole)) for root, repo, whole in await tx.all(rows.PARTIAL_ROOTS)]
        roots += [_Wanted(root, "", repo, tuple(keys.get(repo, ())), True) for root, repo, _ in parts]
    for line in [await _wrong_part(store, *part) for part in parts]:
        if line is not None:
            yield line
    marks = Marks()
    try:
        pending = [root for root in roots if root.digest != tree.EMPTY_ROOT]
        await marks.add(root.digest for root in pending)
        while pending:
            batch = pending[-AT_ONCE:]
            del pending[-AT_ONCE:]
            located = await store.locate([directory.digest for directory in batch])
            for part in _split_batches(batch, located):
                raws = await _read(
                    store, [directory.digest for directory in part if directory.digest in located]
                )
                below, files, wrong = await asyncio.to_thread(_check_directories, part, raws)
                for line in wrong + await _wrong_files(db, files):
                    yield line
                fresh = set(await marks.add(directory.digest for directory in below))
                pending += list(
                    {directory.digest: directory for directory in below if directory.digest in fresh}.values()
                )
    finally:
        marks.close()


def _split_batches(batch: list[_Wanted], located: Mapping[bytes, Located]) -> Iterator[list[_Wanted]]:
    """Splits the directories into batches that are each read together. Directories that are not stored come
    first."""
    by_digest: dict[bytes, list[_Wanted]] = {}
    for directory in batch:
        by_digest.setdefault(directory.digest, []).append(directory)
    if missing := [directory for directory in batch if directory.digest not in located]:
        yield missing
    for part in split_batches(located.values(), DIRECTORY_BYTES, attrgetter("size")):
        yield [directory for place in part for directory in by_digest[place.digest]]


async def _read(store: ObjectStore, digests: list[bytes]) -> dict[bytes, bytes]:
    raws: dict[bytes, bytes] = {}
    try:
        return await store.read_many(digests)
    except SvcError:
        for digest in digests:  # find the ones that cannot be read
            try:
                raws[digest] = await store.read(digest)
            except SvcError:
                continue
    return raws


def _check_directories(
    batch: list[_Wanted], raws: Mapping[bytes, bytes]
) -> tuple[list[_Wanted], dict[str, dict[str, TreeEntry]], list[str]]:
    """Verify directories. Returns (subdirectories, files by repository and path, errors)."""
    below: list[_Wanted] = []
    files: dict[str, dict[str, TreeEntry]] = {}
    wrong: list[str] = []
    for place in batch:
        name = f"tree {place.digest.hex()[:12]} of repository {place.repo_id}, {place.path or 'root'}"
        try:
            keys, partial, directory = _verify_directory(place, raws.get(place.digest))
        except SvcError as error:
            wrong.append(f"{name}: {error.detail}")
            continue
        if directory is None:
            wrong.append(f"{name}: it is missing")
            continue
        for child in directory.children:
            path = join(place.path, child.name)
            if child.kind == "dir":
                below.append(_Wanted(child.digest, path, place.repo_id, keys, partial))
            else:
                files.setdefault(place.repo_id, {})[path] = child.entry
    return below, files, wrong


def _verify_directory(place: _Wanted, raw: bytes | None) -> tuple[tuple[bytes, ...], bool, Directory | None]:
    """Check a directory's digest. Raises SvcError if it is wrong. Returns (keys, partial, directory). `keys`:
    the tree key with which the digest was made, or all keys that it may have been made with. `partial`:
    whether the repository has only part of the directory. `directory`: the decoded directory; None if it is
    missing."""
    if raw is None:
        return place.keys, False, None
    directory = tree.decode(raw)
    if place.partial and name_of(raw) == place.digest:
        return place.keys, True, directory
    first, *others = place.keys
    for key in others:
        if directory_digest(directory, place.path, key) == place.digest:
            return (key,), False, directory
    tree.verify(directory, place.digest, place.path, first)
    return (first,), False, directory


async def _wrong_part(store: ObjectStore, root: bytes, repo_id: str, whole: bytes) -> str | None:
    """Check that the partial tree `root` is a part of the signed tree `whole`. Returns the error, or None."""
    name = f"tree {root.hex()[:12]} of repository {repo_id}"
    try:
        if await drive(tree.find_signed_digest(root, {}), store.read_many) != whole:
            return f"{name}: it is not a part of the tree {whole.hex()[:12]}"
    except SvcError as error:
        return f"{name}: {error.detail}"
    return None


async def _wrong_files(db: Database, files: dict[str, dict[str, TreeEntry]]) -> list[str]:
    wrong: list[str] = []
    for repo_id, named in files.items():
        async with db.read() as tx:
            plain = await _find_sizes(tx, rows.HELD, repo_id, named, large=False)
            large = await _find_sizes(tx, chunked_files.SIZES, repo_id, named, large=True)
        for path, entry in named.items():
            held = large if entry.kind == "chunked" else plain
            if held.get(entry.digest) != entry.size:
                fault = "is missing" if entry.digest not in held else "has another size than its tree says"
                wrong.append(f"file {path} of repository {repo_id}: object {entry.digest.hex()} {fault}")
    return wrong


async def _find_sizes(
    tx: Tx, statement: Statement, repo_id: str, named: dict[str, TreeEntry], *, large: bool
) -> dict[bytes, int]:
    digests = sorted({entry.digest for entry in named.values() if (entry.kind == "chunked") is large})
    sizes = await tx.all(statement, repo_id=repo_id, digests=digests) if digests else []
    return {bytes(digest): size for digest, size in sizes}
