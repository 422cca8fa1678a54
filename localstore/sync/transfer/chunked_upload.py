"""Uploads a large file: cuts it into chunks, sends the chunks that the relay lacks, then sends the chunk
manifest.

Usually the scan has already cut the file while hashing it (`localstore.folder.chunking`). The file is never
completely in memory. Each chunk is verified before it is sent, because the user may save the file meanwhile.
A repeated upload sends only missing chunks."""

from __future__ import annotations

import os

from localstore.core.model import limits
from localstore.core.model.seal import PayloadMissing
from localstore.core.storage import chunks
from localstore.folder.chunking import ChunkList, FileChanged, chunks_of, pack_chunks
from localstore.sync.transfer.pack_uploads import PackUploads
from localstore.sync.working_copy import WorkingCopy

PACK = 16 * limits.MIB  # of chunks in one request: they are in memory until it is sent
TRIES = 3  # attempts if the relay's collector deletes chunks meanwhile


def upload(copy: WorkingCopy, path: str, digest: bytes) -> int:
    """Upload the file at `path` whose BLAKE3 was `digest`. Returns the number of bytes sent. If the file has
    changed, its manifest is not sent."""
    listed = copy.chunk_lists.pop(digest) or _cut(copy, path, digest)
    if listed is None:
        return 0
    raw = chunks.encode(chunks.manifest(digest, ((chunk.digest, chunk.size) for chunk in listed)))
    sent = 0
    for attempt in range(1, TRIES + 1):
        part = _send(copy, path, listed)
        if part is None:
            return sent
        sent += part
        try:
            copy.transport.put_manifest(digest, raw)
        except PayloadMissing:
            if attempt == TRIES:
                raise
        else:
            return sent + len(raw)
    return sent


def _cut(copy: WorkingCopy, path: str, digest: bytes) -> ChunkList | None:
    """The chunks of the file. None if the file was removed, or if it no longer has the digest."""
    try:
        with os.fdopen(copy.files.open(path), "rb", buffering=0) as file:
            return chunks_of(file, digest)
    except OSError:
        return None


def _send(copy: WorkingCopy, path: str, listed: ChunkList) -> int | None:
    """Send the chunks that the relay lacks. Returns the number of bytes sent. None if the file changed
    meanwhile."""
    digests = list(dict.fromkeys(chunk.digest for chunk in listed))
    missing: list[bytes] = []
    for start in range(0, len(digests), limits.HAVE_DIGESTS):
        missing += copy.transport.have(digests[start : start + limits.HAVE_DIGESTS])
    uploads = PackUploads(copy, len(missing))
    try:
        with os.fdopen(copy.files.open(path), "rb", buffering=0) as file:
            for step in pack_chunks(file, listed, missing, PACK):
                uploads.send(step.packs)
    except (OSError, FileChanged):
        return None
    return uploads.sent
