"""Large files: a manifest lists the chunks of a file, and the node verifies the whole file once.

    chunks   objects of the repository, sent in packs
    PUT      the manifest: all its chunks must be stored, and joined they must have the file's digest
    row      from now on live updates (`set_blob`) and sealed trees may name the file by its own digest

A row of `chunked_file` exists only for a verified file. The collector deletes the row if no frontier, seal,
prepared seal or asset names the file, and if the row was not used for the time GC_GRACE. For the rows that
remain, it keeps the manifests and chunks, which `list_all` yields.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Collection, Iterator, Mapping, Sequence
from types import MappingProxyType

from blake3 import blake3

from localstore.core.encoding import digest as blake3_digest
from localstore.core.encoding import unhex
from localstore.core.errors import DigestMismatch, Invalid, NotFound, TooLarge, Unavailable
from localstore.core.model import limits
from localstore.core.model.payload import ChunkedStored
from localstore.core.model.seal import PayloadMissing
from localstore.core.storage import chunks as kernel
from localstore.core.storage.chunks import ChunkManifest, ChunkRow
from relay.base.clock import now_ms
from relay.caller import View
from relay.db.engine.database import Database, Tx
from relay.db.storage import chunked_file as rows
from relay.db.storage.object import Located
from relay.http.routing import Reply, Upload
from relay.node import Node
from relay.objects.store import STALE_TOUCH, ObjectStore

BYTES = "application/octet-stream"
READ_CHUNKS = 64  # located and read at once: about 4 MiB
CHECKED_CHUNKS = 1024  # located at once where their bytes are not kept
MISSING_TOLD = 100


async def put(view: View, name: str, upload: Upload) -> tuple[ChunkedStored, bool]:
    """Store the manifest of the file `name` (hex BLAKE3). Returns (answer, whether the file is new to the
    repository).

    Raises TooLarge if this kind of repository accepts no large files, or none of this size. Raises
    PayloadMissing with the chunks to send first, DigestMismatch if the chunks do not give the file `name`,
    and Unavailable while the chunks are still being read.
    """
    if view.repo.kind not in kernel.KINDS:
        raise TooLarge(f"files of this repository have at most {limits.in_words(limits.BLOB_FILE)}")
    digest = unhex(name)
    raw = await upload.whole()
    manifest = await asyncio.to_thread(kernel.decode, raw)
    if view.repo.kind not in kernel.BULK_KINDS and manifest.size > limits.APP_FILE_CLAMP:
        raise TooLarge(f"files of this repository have at most {limits.APP_FILE_CLAMP} bytes")
    if manifest.blake3 != name:
        raise Invalid(f"this is the manifest of {manifest.blake3[:12]}, not of {name[:12]}")
    await upload.finish()
    stored = ChunkedStored(blake3=name, size=manifest.size, chunks=len(manifest.chunks))
    async with view.write() as tx:
        if await find_sizes(tx, view.repo.id, [digest]):
            await touch(tx, view.repo.id, [digest])
            return stored, False
    # for each account, because it is checked with that account's rights
    key = (view.repo.id, view.me.account_id.encode() + blake3_digest(raw))
    await view.node.checks.join(key, verify_and_record(view, manifest, raw))
    return stored, True


async def read_manifest(view: View, name: str) -> bytes:
    """The manifest of a large file that this repository holds. `name`: the digest of the file itself."""
    async with view.read() as tx:
        digest = await tx.value(rows.MANIFEST, repo_id=view.repo.id, digest=unhex(name))
    if digest is None:
        raise NotFound
    return await view.node.objects.read(bytes(digest))


# --- what is here


async def find_sizes(tx: Tx, repo_id: str, digests: Collection[bytes]) -> dict[bytes, int]:
    """Find which of `digests` are files that the repository holds in chunks. Returns their sizes in bytes, by
    digest."""
    if not digests:
        return {}
    sizes = await tx.all(rows.SIZES, repo_id=repo_id, digests=sorted(digests))
    return {bytes(digest): size for digest, size in sizes}


async def any_held(tx: Tx, repo_id: str) -> bool:
    """Whether the repository holds any large file. Most repositories hold none, so that no digest need be
    looked up among large files."""
    return await tx.value(rows.ANY, repo_id=repo_id) is not None


async def touch(tx: Tx, repo_id: str, digests: Collection[bytes]) -> None:
    """Protect these files from the collector for another day. Call this when something refers to them or will
    soon do so."""
    if digests:
        now = now_ms()
        await tx.run(rows.TOUCH, repo_id=repo_id, digests=sorted(digests), now=now, stale=now - STALE_TOUCH)


async def list_all(db: Database, objects: ObjectStore) -> AsyncIterator[list[bytes]]:
    """Yields, for every large file that has a row, the digest of its manifest and the digests of its chunks.
    The collector keeps these objects."""
    async with db.read() as tx:
        manifests = [bytes(name) for (name,) in await tx.all(rows.MANIFESTS)]
    for name in manifests:
        chunk_manifest = await asyncio.to_thread(kernel.decode, await objects.read(name))
        yield [name, *(bytes.fromhex(chunk.blake3) for chunk in chunk_manifest.chunks)]


# --- taking one in


async def verify_and_record(view: View, chunk_manifest: ChunkManifest, raw: bytes) -> None:
    """Read and verify all chunks of a file. Then record the file, if the caller may still do so; the request
    itself may have ended meanwhile. `raw`: the canonical bytes of `chunk_manifest`."""
    node, repo_id = view.node, view.repo.id
    whole = blake3()
    for part in _split_portions(chunk_manifest.chunks, CHECKED_CHUNKS):
        located = await _locate_chunks(node, repo_id, part)
        in_order = [located[bytes.fromhex(chunk.blake3)] for chunk in part]
        await node.objects.show(in_order, whole.update)
    if whole.hexdigest() != chunk_manifest.blake3:
        raise DigestMismatch(
            f"these chunks are not the file {chunk_manifest.blake3[:12]}; read it again and resend"
        )
    name = blake3_digest(raw)
    placed = await node.objects.place({name: raw}, repo_id)
    async with view.write() as tx:
        await node.objects.admit(tx, placed, repo_id, [name])
        digests = sorted({bytes.fromhex(chunk.blake3) for chunk in chunk_manifest.chunks})
        await node.objects.touch(tx, digests)
        if await node.objects.find_missing(tx, repo_id, digests):
            raise Unavailable("the upload ran into a clean-up of old bytes; send it again")
        row = {
            "repo_id": repo_id,
            "digest": bytes.fromhex(chunk_manifest.blake3),
            "manifest": name,
            "size": chunk_manifest.size,
            "last_seen": now_ms(),
        }
        await tx.many(rows.INSERT, [row])


async def _locate_chunks(node: Node, repo_id: str, part: Sequence[ChunkRow]) -> dict[bytes, Located]:
    """Find where these chunks are stored. Raises PayloadMissing with the chunks that the repository lacks,
    and Invalid if the size of a chunk is not the size in the manifest."""
    sizes = {bytes.fromhex(chunk.blake3): chunk.size for chunk in part}
    located = await node.objects.locate(list(sizes), repo_id)
    missing = [chunk for chunk in sizes if chunk not in located or located[chunk].directory]
    if missing:
        raise PayloadMissing(
            "the repository does not hold all chunks of this file; send them first",
            missing=[chunk.hex() for chunk in missing[:MISSING_TOLD]],
        )
    for chunk in part:
        stored = located[bytes.fromhex(chunk.blake3)].size
        if stored != chunk.size:
            raise Invalid(f"chunk {chunk.blake3[:12]} has {stored} bytes, not {chunk.size}")
    return located


def _split_portions(listed: Sequence[ChunkRow], count: int) -> Iterator[Sequence[ChunkRow]]:
    for start in range(0, len(listed), count):
        yield listed[start : start + count]


# --- giving it out


def reply(
    view: View,
    digest: bytes,
    size: int,
    headers: Mapping[str, str] = MappingProxyType({}),
    media: str = BYTES,
) -> Reply:
    """An answer that streams the whole file, or the range that the request names."""
    return Reply(
        stream=read(view, digest),
        section=lambda start, end: read(view, digest, start, end),
        length=size,
        content_type=media,
        etag=f'"{digest.hex()}"',
        headers=headers,
    )


async def read(view: View, digest: bytes, start: int = 0, end: int | None = None) -> AsyncIterator[bytes]:
    """Yields the bytes from `start` to `end` (exclusive) of a large file, with a few MiB in memory. Raises
    NotFound unless the repository holds the file."""
    raw = await read_manifest(view, digest.hex())
    chunk_manifest = await asyncio.to_thread(kernel.decode, raw)
    end = chunk_manifest.size if end is None else end
    chunks, skip = _chunks_between(chunk_manifest.chunks, start, end)
    bytes_left = end - start
    for part in _split_portions(chunks, READ_CHUNKS):
        located = await _locate_chunks(view.node, view.repo.id, part)
        data = await view.node.objects.read_located(list(located.values()), cache=False)
        for chunk in part:
            piece = data[bytes.fromhex(chunk.blake3)][skip : skip + bytes_left]
            skip, bytes_left = 0, bytes_left - len(piece)
            if piece:
                yield piece


def _chunks_between(listed: Sequence[ChunkRow], start: int, end: int) -> tuple[list[ChunkRow], int]:
    """Find the chunks that hold the bytes from `start` to `end` (exclusive). Returns (chunks, number of bytes
    of the first chunk that are before `start`)."""
    chunks: list[ChunkRow] = []
    skip = at = 0
    for chunk in listed:
        if at < end and at + chunk.size > start:
            if not chunks:
                skip = start - at
            chunks.append(chunk)
        at += chunk.size
    return chunks, skip
