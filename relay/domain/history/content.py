"""Reads and checks objects of a repository, for the live frontier and for seals."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Container, Iterable, Mapping

from localstore.core.errors import Invalid, NotFound, Unavailable
from localstore.core.model.limits import MIB
from localstore.core.model.seal import PayloadMissing
from localstore.core.storage.file_kind import kind_of
from relay.base.batches import split_batches
from relay.db.engine.database import Tx
from relay.db.storage import object as objects
from relay.domain.storage import chunked
from relay.node import Node

READ_AT_ONCE = 32 * MIB
NOT_HELD = "the repository does not hold these bytes; send them first"
FileEntry = tuple[str, bytes, int]
"""Kind, digest and size of a file."""


async def find_sizes(tx: Tx, repo_id: str, digests: Collection[bytes]) -> dict[bytes, int]:
    """Find which of `digests` the repository holds. Returns the sizes in bytes of these objects, by
    digest."""
    if not digests:
        return {}
    rows = await tx.all(objects.HELD, repo_id=repo_id, digests=digests)
    return {bytes(digest): size for digest, size, _ in rows}


async def protect_held(node: Node, tx: Tx, repo_id: str, digests: Collection[bytes]) -> dict[bytes, int]:
    """Protect from the collector for another day those objects among `digests` that the repository holds,
    because something is about to refer to them. Returns their sizes in bytes, by digest."""
    if not digests:
        return {}
    rows = await tx.all(objects.HELD, repo_id=repo_id, digests=digests)
    stale = sorted(bytes(digest) for digest, _, seen in rows if node.objects.stale(seen))
    if not stale:
        return {bytes(digest): size for digest, size, _ in rows}
    await node.objects.touch(tx, stale)
    return await find_sizes(tx, repo_id, digests)  # the collector may have been faster


async def read(
    node: Node, tx: Tx | None, repo_id: str, digests: Iterable[bytes], *, cache: bool = False
) -> Mapping[bytes, bytes]:
    """Read the bytes of these objects of the repository, by digest. `tx`: the transaction to use; if None, a
    new one is opened. `cache`: keep their frames (compressed groups of objects) in memory for the next reads.
    Raises PayloadMissing with the digests of objects that the repository lacks."""
    distinct = sorted(set(digests))
    if not distinct:
        return {}
    placed = await node.objects.locate(distinct, repo_id, tx)
    files = {digest: place for digest, place in placed.items() if not place.directory}
    _require_all(distinct, files)
    return await node.objects.read_located(list(files.values()), tx, cache=cache)


async def require(tx: Tx, repo_id: str, digests: Collection[bytes]) -> dict[bytes, int]:
    """Check that the repository holds these objects. Returns their sizes in bytes, by digest. Raises
    PayloadMissing with the digests that are missing."""
    sizes = await find_sizes(tx, repo_id, digests)
    _require_all(digests, sizes)
    return sizes


def _require_all(digests: Collection[bytes], held_objects: Container[bytes]) -> None:
    missing = sorted(digest.hex() for digest in set(digests) if digest not in held_objects)
    if missing:
        raise PayloadMissing(NOT_HELD, missing=missing)


async def require_files(node: Node, tx: Tx, repo_id: str, files: Collection[FileEntry]) -> None:
    """Check that the repository holds these files, whole or in chunks according to their kind, and protect
    them from the collector. Raises PayloadMissing with the missing files, and Invalid if the size of a file
    differs."""
    small = {digest for kind, digest, _ in files if kind != "chunked"}
    large = {digest for kind, digest, _ in files if kind == "chunked"}
    sizes = await protect_held(node, tx, repo_id, small)
    large_sizes = await chunked.find_sizes(tx, repo_id, large)
    _require_all(small | large, sizes.keys() | large_sizes.keys())
    for kind, digest, size in files:
        actual = (large_sizes if kind == "chunked" else sizes)[digest]
        if actual != size:
            raise Invalid(f"the file {digest.hex()[:12]} has {actual} bytes, not {size}")


async def is_held_and_safe(node: Node, tx: Tx, repo_id: str, files: Collection[FileEntry]) -> bool:
    """Whether the repository holds all these files whole, and the collector will keep them for some hours.
    False if one of them is stored in chunks."""
    rows = await tx.all(objects.HELD, repo_id=repo_id, digests={digest for _, digest, _ in files})
    sizes = {bytes(digest): size for digest, size, seen in rows if not node.objects.stale(seen)}
    return all(kind != "chunked" and sizes.get(digest) == size for kind, digest, size in files)


async def find_texts(node: Node, tx: Tx, repo_id: str, sizes: Mapping[bytes, int]) -> set[bytes]:
    """Find which of these objects, all held by the repository, are text. Returns their digests. `sizes`: the
    size of each object in bytes, by digest.

    Each object is read once. At most `READ_AT_ONCE` bytes, or one larger object, are in memory at a time.
    Raises Unavailable if the collector deletes an object meanwhile.
    """
    text_digests: set[bytes] = set()
    for part in split_batches(sizes, READ_AT_ONCE, sizes.__getitem__):
        try:
            data = await node.objects.read_many(part, repo_id, tx, cache=False)
        except NotFound:
            raise Unavailable("the upload ran into a clean-up of old bytes; send it again") from None
        small = sum(map(len, data.values())) <= MIB
        text_digests |= _find_texts(data) if small else await asyncio.to_thread(_find_texts, data)
    return text_digests


def _find_texts(data: Mapping[bytes, bytes]) -> set[bytes]:
    return {digest for digest, raw in data.items() if kind_of(raw) == "text"}
