"""Finds every object to which something refers. The collector and the audit start from these roots.

Roots are all seals with their trees and files, prepared seals, and assets of releases. Of live frontiers they
are the current files, and the genesis texts of lanes in the current and the kept older epochs. If only
partial forks have the tree of a seal, their partial trees are roots instead. Files that were deleted before
any seal, frontiers of deleted branches, and checkpoints are not roots.

The roots are listed in one snapshot and the trees are read afterwards. This is safe, because only the
collector deletes objects. Chunks of large files are not listed here; the collector finds them itself.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from operator import attrgetter

import msgspec

from localstore.core import tree
from localstore.core.errors import Unavailable
from localstore.core.model.limits import MIB
from relay.base.batches import split_batches
from relay.db.engine.database import Database, Tx
from relay.db.seal import SealDraft
from relay.db.storage import collect as rows
from relay.objects.marks import Marks
from relay.objects.store import ObjectStore

BATCH = 5000  # digests marked at once
DIRECTORIES = 256  # directories looked up at once
DIRECTORY_BYTES = 8 * MIB  # bytes of them read at once
_DRAFTS = msgspec.msgpack.Decoder(list[SealDraft])


async def mark(db: Database, objects: ObjectStore, marks: Marks) -> None:
    """Mark every object to which something refers. Raises Unavailable if a tree cannot be read."""
    async with db.read(snapshot=True) as tx:
        pending = await _from_rows(tx, marks)
    while pending:
        batch = pending[-DIRECTORIES:]
        del pending[-DIRECTORIES:]
        located = await objects.locate(batch)
        missing = set(batch) - located.keys()
        if missing:
            raise Unavailable(
                f"the tree {min(missing).hex()[:12]} is missing, so what it refers to is unknown; "
                "run: relay audit"
            )
        for part in split_batches(located.values(), DIRECTORY_BYTES, attrgetter("size")):
            data = await objects.read_located(part)
            directories, files = await asyncio.to_thread(_find_children, list(data.values()))
            await marks.add(files)
            pending += await marks.add(directories)


async def _from_rows(tx: Tx, marks: Marks) -> list[bytes]:
    """Mark every object that a database row names. Returns the newly marked tree roots, whose contents are
    not marked yet."""
    trees: list[bytes] = []
    for statement in (rows.SEAL_ROOTS, rows.PARTIAL_ROOTS):
        async for (root,) in tx.stream(statement):
            trees.append(bytes(root))
    async for (raw,) in tx.stream(rows.PREPARED):
        drafts = _DRAFTS.decode(raw)
        trees += [draft.root for draft in drafts]
        await marks.add(digest for draft in drafts for _, kind, digest, _ in draft.changes if kind)
    for statement in (rows.LANES, rows.FINALS, rows.ASSETS):
        batch: list[bytes] = []
        async for row in tx.stream(statement):
            batch += [bytes(digest) for digest in row if digest is not None]
            if len(batch) >= BATCH:
                await marks.add(batch)
                batch = []
        await marks.add(batch)
    return await marks.add(root for root in trees if root != tree.EMPTY_ROOT)


def _find_children(raws: Iterable[bytes]) -> tuple[list[bytes], list[bytes]]:
    """Read which children these directories have. Returns (digests of directories, digests of files)."""
    directories: list[bytes] = []
    files: list[bytes] = []
    for raw in raws:
        for child in tree.decode(raw).children:
            (directories if child.kind == "dir" else files).append(child.digest)
    return directories, files
