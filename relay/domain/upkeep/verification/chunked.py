"""Checks large files: the manifest of each file must be readable, and the file's repository must hold every
chunk that the manifest lists.
"""

from __future__ import annotations

from collections.abc import AsyncIterator

from localstore.core.errors import SvcError
from localstore.core.storage import chunks
from relay.db.engine.database import Database
from relay.db.storage import chunked_file as rows
from relay.objects.store import ObjectStore


async def check(db: Database, store: ObjectStore) -> AsyncIterator[str]:
    """Yields a line for each large file that is not complete."""
    async with db.read() as tx:
        files = await tx.all(rows.ALL)
    for repo_id, digest, manifest, size in files:
        name = f"large file {bytes(digest).hex()} of repository {repo_id}"
        try:
            chunk_manifest = chunks.decode(await store.read(bytes(manifest)))
        except SvcError as error:
            yield f"{name}: its manifest cannot be read ({error.detail or error.title})"
            continue
        if chunk_manifest.blake3 != bytes(digest).hex() or chunk_manifest.size != size:
            yield f"{name}: its manifest is of another file"
        async with db.read() as tx:
            digests = sorted({bytes.fromhex(chunk.blake3) for chunk in chunk_manifest.chunks})
            missing = await store.find_missing(tx, repo_id, digests)
        if missing:
            yield f"{name}: {len(missing)} of {len(digests)} chunks are missing"
