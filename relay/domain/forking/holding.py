"""Copies seals of another repository, and the objects that they name, into a repository. The target is a new
fork, or the base of a proposal from another repository. Only database rows are copied.

    history = await gather(node, source, target, heads)     # reads, outside of a transaction
    async with …: await acquire(tx, node, target, history)  # a fork: the objects count for its owner at once
    async with …: await borrow(tx, node, target, history)   # a proposal: they count when it is merged

A seal is copied with its whole history and with its original signatures. A fork by somebody who does not see
all paths gets partial trees (`forking.parting`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from localstore.core import tree
from localstore.core.storage import chunks as kernel
from localstore.core.tree.policy import Policy
from relay.base.batches import split_batches
from relay.base.clock import now_ms
from relay.capacity import quota
from relay.db import repo as repos
from relay.db import seal as seals
from relay.db.collaboration import fork as rows
from relay.db.engine.database import Tx
from relay.db.history import FIRST
from relay.db.storage import chunked_file as large_files
from relay.db.storage import object as objects
from relay.domain.forking import parting
from relay.domain.forking.parting import Parts
from relay.memory import trees
from relay.node import Node

T = TypeVar("T")

BATCH = 1000  # ids or digests of one statement


@dataclass(slots=True)
class SharedHistory:
    """The part of another repository's history that a repository takes over.

    `seals`: ids of seals. `trees`: partial trees of those seals of which some paths are hidden. `sizes`:
    bytes of the objects that the seals name, by digest. `large`: rows of files that are stored in chunks.
    """

    source: str
    seals: list[str]
    trees: Parts = field(default_factory=Parts)
    sizes: dict[bytes, int] = field(default_factory=dict)
    large: list[tuple[bytes, bytes, int]] = field(default_factory=list)


async def gather(
    node: Node, source: str, target: str, heads: Sequence[str], policy: Policy | None = None
) -> SharedHistory:
    """Collect the seals in the history of `heads` in `source` that `target` lacks, with the part of their
    trees that `policy` shows. Seals never change, so the result stays valid in every later transaction."""
    async with node.db.read(snapshot=True) as tx:
        seal_rows = await tx.all(rows.FRESH, of_repo=source, to_repo=target, ids=sorted(set(heads)))
        history = SharedHistory(source, [seal_id for seal_id, *_ in seal_rows])
        digests: set[bytes] = set()
        chunked_digests: set[bytes] = set()
        for ids in _batches(history.seals):
            for path, kind, digest in await tx.all(rows.CHANGED, ids=ids):
                if policy is None or policy.sees(path):
                    (chunked_digests if kind == "chunked" else digests).add(bytes(digest))
        load = trees.loader_of(node.objects, tx)
        roots = {seal_id: (bytes(root), bytes(signed)) for seal_id, _, root, signed in seal_rows}
        history.trees = await parting.part_trees(tx, load, source, roots, policy)
        first = {
            history.trees.roots.get(seal_id, bytes(root))
            for seal_id, generation, root, _ in seal_rows
            if generation == FIRST
        }
        load = history.trees.load(load)
        for root in first - {tree.EMPTY_ROOT}:
            for entry in (await trees.drive(tree.walk(root), load)).values():
                (chunked_digests if entry.kind == "chunked" else digests).add(entry.digest)
        for batch in _batches(sorted(chunked_digests)):
            large = await tx.all(large_files.ROWS, repo_id=source, digests=batch)
            history.large += [(bytes(digest), bytes(manifest), size) for digest, manifest, size in large]
        for manifest in {manifest for _, manifest, _ in history.large}:
            listed = await asyncio.to_thread(kernel.decode, await node.objects.read(manifest, None, tx))
            digests |= {manifest, *(bytes.fromhex(chunk.blake3) for chunk in listed.chunks)}
        for batch in _batches(sorted(digests)):
            located = await node.objects.locate(batch, source, tx)
            history.sizes |= {
                known_object.digest: known_object.size
                for known_object in located.values()
                if not known_object.directory
            }
    history.trees.placed = await node.objects.place(history.trees.written, None)
    return history


async def acquire(tx: Tx, node: Node, target: str, history: SharedHistory) -> None:
    """Give a new repository the seals and objects in `history`. They count against its owner's quota. Raises
    QuotaExceeded."""
    await _insert_held(tx, target, history)
    if history.trees.written:
        directories = list(history.trees.written)
        await node.objects.admit(tx, history.trees.placed, target, directories, directories=True)
    scopes = [{"repo_id": target, "digest": digest} for digest in sorted(history.sizes)]
    await tx.many(objects.SCOPE_INSERT, scopes)
    await quota.count(tx, target, len(scopes), sum(history.sizes.values()), node.config.quota)


async def borrow(tx: Tx, node: Node, target: str, history: SharedHistory) -> None:
    """Give the repository the seals in `history`, and lend it their objects. Lent objects count against
    nobody's quota until `adopt` is called."""
    await _insert_held(tx, target, history)
    for batch in _batches(sorted(history.sizes)):
        fresh = await node.objects.find_missing(tx, target, batch)
        await tx.many(objects.LEND, [{"repo_id": target, "digest": digest} for digest in sorted(fresh)])


async def adopt(tx: Tx, node: Node, repo_id: str, heads: Sequence[str], more: Iterable[bytes] = ()) -> None:
    """Make lent objects the repository's own: those that the seals `heads` name, and those in `more`. Call
    this before one of the repository's branches gets these seals. Raises QuotaExceeded."""
    if await tx.one(objects.ANY_LENT, repo_id=repo_id) is None:
        return
    digests = set(more)
    seal_ids = [row[0] for row in await tx.all(rows.CAME, of_repo=repo_id, ids=sorted(set(heads)))]
    for ids in _batches(seal_ids):
        digests |= {bytes(digest) for _, _, digest in await tx.all(rows.CHANGED, ids=ids)}
    load = trees.loader_of(node.objects, tx)
    for ids in _batches(seal_ids):
        for _, generation, root in await tx.all(seals.HEADS, repo_id=repo_id, ids=ids):
            if generation == FIRST and bytes(root) != tree.EMPTY_ROOT:
                files = await trees.drive(tree.walk(bytes(root)), load)
                digests |= {entry.digest for entry in files.values()}
    for batch in _batches(sorted(digests)):
        for _, manifest, _ in await tx.all(large_files.ROWS, repo_id=repo_id, digests=batch):
            name = bytes(manifest)
            if name not in digests:
                listed = await asyncio.to_thread(kernel.decode, await node.objects.read(name, None, tx))
                digests |= {name, *(bytes.fromhex(chunk.blake3) for chunk in listed.chunks)}
    for batch in _batches(sorted(digests)):
        lent = [bytes(row[0]) for row in await tx.all(objects.LENT, repo_id=repo_id, digests=batch)]
        if lent:
            await node.objects.touch(tx, lent)
            await node.objects.link(tx, repo_id, lent)
            await tx.run(objects.TAKE_OVER, repo_id=repo_id, digests=lent)


async def hand_over(tx: Tx, repo_id: str) -> None:
    """Prepare to purge a repository. Other repositories may have copies of its seals; each such seal is
    assigned to one of these repositories. The repository's forks lose their parent."""
    await tx.run(rows.HAND_OVER, of_repo=repo_id)
    await tx.run(rows.ORPHAN, of_repo=repo_id)


async def _insert_held(tx: Tx, target: str, history: SharedHistory) -> None:
    roots = history.trees.roots
    await tx.many(
        rows.HOLD,
        [{"repo_id": target, "seal_id": seal_id, "root": roots.get(seal_id)} for seal_id in history.seals],
    )
    older = [row[0] for row in await tx.all(rows.LINEAGE, of_repo=history.source)]
    related = {history.source, *older} - {target}
    await tx.many(rows.DESCEND, [{"repo_id": target, "of_id": repo_id} for repo_id in sorted(related)])
    keys = await tx.all(repos.KEYS, repo_id=history.source)
    await tx.many(
        repos.KEEP_KEY, [{"repo_id": target, "id": key_id, "key": bytes(key)} for key_id, key in keys]
    )
    now = now_ms()
    await tx.many(
        large_files.INSERT,
        [
            {"repo_id": target, "digest": digest, "manifest": manifest, "size": size, "last_seen": now}
            for digest, manifest, size in history.large
        ],
    )


def _batches(listed: Sequence[T]) -> Iterable[list[T]]:
    return split_batches(listed, BATCH, lambda _: 1)
