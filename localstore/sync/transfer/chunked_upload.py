"""Uploads a file above the blob cap: cuts it, asks which chunks the relay lacks, sends those, then the
manifest.

The scan usually cut the file while hashing it (`localstore.folder.chunking`). The file is never in memory as
a whole, and each chunk is verified before it is sent, because the user may save meanwhile. A repeat sends
only missing chunks.
"""

from __future__ import annotations

import os
from operator import attrgetter

from blake3 import blake3

from localstore.core import limits
from localstore.core.encoding import digest as blake3_digest
from localstore.core.model.seal import PayloadMissing
from localstore.core.storage import chunks
from localstore.core.storage.pack import Pack, PackWriter
from localstore.folder.chunking import ChunkList, cut_into_chunks
from localstore.sync.working_copy import WorkingCopy

PACK = 16 * limits.MIB  # of chunks in one request: they are in memory until it is sent
TRIES = 3  # attempts if the relay's collector deletes chunks meanwhile


def upload(copy: WorkingCopy, path: str, digest: bytes) -> int:
    """Upload the file at `path` whose BLAKE3 was `digest`. Returns the bytes sent; sends no manifest if the
    file changed."""
    listed = copy.chunk_lists.pop(digest) or _cut(copy, path, digest)
    if listed is None:
        return 0
    raw = chunks.encode(chunks.manifest(digest, ((one.digest, one.size) for one in listed)))
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
    """The chunks of the file; None if it is gone or its digest is another."""
    whole = blake3()
    try:
        with os.fdopen(copy.files.open(path), "rb", buffering=0) as file:
            found = cut_into_chunks(file, whole.update)
    except OSError:
        return None
    return found if whole.digest() == digest else None


def _send(copy: WorkingCopy, path: str, listed: ChunkList) -> int | None:
    """Send the chunks that the relay lacks. Returns the bytes sent, None if the file changed."""
    by_digest = {one.digest: one for one in listed}
    asked = list(by_digest)
    missing: list[bytes] = []
    for start in range(0, len(asked), limits.HAVE_DIGESTS):
        missing += copy.transport.have(asked[start : start + limits.HAVE_DIGESTS])
    wanted = sorted((by_digest[one] for one in missing if one in by_digest), key=attrgetter("offset"))
    writer, sent = PackWriter(PACK), 0

    def ship(packs: list[Pack]) -> int:
        for pack in packs:
            copy.transport.upload_pack(pack)
        return sum(pack.size for pack in packs)

    try:
        with os.fdopen(copy.files.open(path), "rb", buffering=0) as file:
            for count, one in enumerate(wanted, 1):
                data = os.pread(file.fileno(), one.size, one.offset)
                if blake3_digest(data) != one.digest:
                    return None
                sent += ship(writer.add(one.digest, data, text=False))
                copy.progress("upload", count, len(wanted), sent)
    except OSError:
        return None
    return sent + ship(writer.finish())
