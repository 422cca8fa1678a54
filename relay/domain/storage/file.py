"""A file that is uploaded as one stream. Up to the size limit of blobs it becomes one object, and above it
chunks with a manifest.

    received = await receive(view, upload)       # durable, but not reachable yet
    async with view.write() as tx:
        await received.attach(tx, view)      # reachable when the transaction commits

If a failure occurs between the two steps, the collector deletes the unreferenced bytes.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from blake3 import blake3

from localstore.core.encoding import digest as blake3_digest
from localstore.core.errors import BadRequest, NotFound, TooLarge
from localstore.core.model.limits import ASSET_FILE, BLOB_FILE, CHUNK_MANIFEST, in_words
from localstore.core.storage import chunks as kernel
from localstore.core.storage.chunks import Chunker
from relay.base.clock import now_ms
from relay.base.threads import run_in_pool
from relay.caller import View
from relay.capacity import quota
from relay.db.engine.database import Tx
from relay.db.storage import chunked_file
from relay.domain.storage import chunked
from relay.domain.storage.pack import STEP, split_steps
from relay.http.buffers import BEGUN_PATIENCE
from relay.http.routing import Reply, Upload
from relay.objects.store import FrameAt

COPIES = 3  # of a step in memory: as it arrived, cut, and framed


@dataclass(slots=True)
class ReceivedFile:
    """A stored file. `objects`: digests of its parts. `manifest`: digest of the object that lists the parts;
    None if the file is one object."""

    digest: bytes
    size: int
    placed: list[FrameAt]
    objects: list[bytes]
    manifest: bytes | None = None

    async def attach(self, tx: Tx, view: View) -> None:
        """Make the file reachable from the repository, and count its bytes. Raises QuotaExceeded."""
        await view.node.objects.admit(tx, self.placed, view.repo.id, self.objects)
        if self.manifest is None:
            return
        row = {
            "repo_id": view.repo.id,
            "digest": self.digest,
            "manifest": self.manifest,
            "size": self.size,
            "last_seen": now_ms(),
        }
        await tx.many(chunked_file.INSERT, [row])
        await chunked.touch(tx, view.repo.id, [self.digest])


async def receive(view: View, upload: Upload) -> ReceivedFile:
    """Store the body of an upload. The request must state its length. Raises QuotaExceeded while the body
    arrives."""
    if upload.length is None:
        raise BadRequest("a file is sent with a Content-Length")
    if upload.length > BLOB_FILE:
        return await _ChunkedUpload(view).receive(upload)
    view.node.reserve.require()
    data = await upload.whole()
    digest = await asyncio.to_thread(blake3_digest, data)
    await upload.finish()
    await _require_quota(view, [(digest, len(data))])
    placed = await view.node.objects.place({digest: data}, view.repo.id)
    return ReceivedFile(digest, len(data), placed, [digest])


async def receive_listed(view: View, upload: Upload) -> ReceivedFile:
    """Receive a file above the size limit of blobs, whose chunks are stored already. The body is its chunk
    manifest. Raises TooLarge above the size limit of assets, PayloadMissing with the chunks to send first,
    and DigestMismatch if the chunks do not give the file that the manifest names."""
    if upload.length is None:
        raise BadRequest("a manifest is sent with a Content-Length")
    if upload.length > CHUNK_MANIFEST:
        raise TooLarge(f"a manifest of chunks has at most {in_words(CHUNK_MANIFEST)}")
    raw = await upload.whole()
    manifest = await asyncio.to_thread(kernel.decode, raw)
    if manifest.size > ASSET_FILE:
        raise TooLarge(f"an asset has at most {in_words(ASSET_FILE)}")
    await upload.finish()
    key = (view.repo.id, view.me.account_id.encode() + blake3_digest(raw))
    await view.node.checks.join(key, chunked.verify_and_record(view, manifest, raw))
    digest, name = bytes.fromhex(manifest.blake3), blake3_digest(raw)
    return ReceivedFile(digest, manifest.size, [], [], name)


async def reply(view: View, digest: bytes, size: int, media: str, headers: Mapping[str, str]) -> Reply:
    """An answer with the whole file, or the range that the request names. Raises NotFound unless the
    repository holds the file."""
    if size > BLOB_FILE:
        return chunked.reply(view, digest, size, headers, media)
    located = await view.node.objects.locate([digest], view.repo.id)
    if digest not in located:
        raise NotFound
    await view.lease.wait(size)
    data = (await view.node.objects.read_located([located[digest]], cache=False))[digest]
    return Reply(data, content_type=media, etag=f'"{digest.hex()}"', headers=headers)


async def _require_quota(view: View, sizes: Sequence[tuple[bytes, int]]) -> None:
    async with view.read() as tx:
        await quota.require(tx, view.repo.id, sizes, view.node.config.quota)


@dataclass(slots=True)
class _ChunkedUpload:
    """A large file while it is uploaded. `rows`: the (digest, size) of its chunks, in order."""

    view: View
    whole: blake3 = field(default_factory=blake3)
    chunker: Chunker = field(default_factory=Chunker)
    rows: list[tuple[bytes, int]] = field(default_factory=list)
    sizes: dict[bytes, int] = field(default_factory=dict)
    placed: list[FrameAt] = field(default_factory=list)

    async def receive(self, upload: Upload) -> ReceivedFile:
        await self.view.lease.wait(COPIES * STEP, BEGUN_PATIENCE)
        async for step in split_steps(upload.chunks()):
            self.view.node.reserve.require()
            await self._write(await run_in_pool(self._cut_chunks, step))
        await self._write(await run_in_pool(self._last_chunks))
        await upload.finish()
        digest = self.whole.digest()
        manifest = kernel.manifest(digest, self.rows)
        raw = await asyncio.to_thread(kernel.encode, manifest)
        name = blake3_digest(raw)
        await self._write([(name, raw)])
        return ReceivedFile(digest, manifest.size, self.placed, list(self.sizes), name)

    async def _write(self, cut: Sequence[tuple[bytes, bytes]]) -> None:
        fresh = {digest: data for digest, data in cut if digest not in self.sizes}
        self.sizes |= {digest: len(data) for digest, data in fresh.items()}
        await _require_quota(self.view, list(self.sizes.items()))
        self.placed += await self.view.node.objects.place(fresh, self.view.repo.id)

    def _cut_chunks(self, step: Sequence[bytes]) -> list[tuple[bytes, bytes]]:
        cut: list[tuple[bytes, bytes]] = []
        for part in step:
            self.whole.update(part)
            rest = memoryview(part)
            while rest:
                space = self.chunker.space()
                count = min(len(space), len(rest))
                space[:count] = rest[:count]
                rest = rest[count:]
                cut += self._take_chunks(self.chunker.feed(count))
        return cut

    def _last_chunks(self) -> list[tuple[bytes, bytes]]:
        return self._take_chunks(self.chunker.finish())

    def _take_chunks(self, chunks: Iterable[memoryview]) -> list[tuple[bytes, bytes]]:
        """Copy chunks out of the buffer and add them to `rows`. Returns (digest, bytes) of each."""
        cut = [(blake3_digest(data), data) for data in map(bytes, chunks)]
        self.rows += [(digest, len(data)) for digest, data in cut]
        return cut
