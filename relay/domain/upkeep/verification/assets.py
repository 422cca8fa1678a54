"""Checks that the repository of each release has the bytes of its assets, in the size that their rows
record.
"""

from __future__ import annotations

from collections.abc import AsyncIterator

from relay.db.engine.database import Database
from relay.domain.upkeep.rows import verification as rows
from relay.objects.store import ObjectStore


async def check(db: Database, store: ObjectStore) -> AsyncIterator[str]:
    """Yields a line for each asset that cannot be downloaded."""
    async with db.read() as tx:
        lost = await tx.all(rows.LOST_ASSETS)
    for repo_id, version, name, digest in lost:
        yield f"asset {name} of release {version} of repository {repo_id}: {bytes(digest).hex()} is missing"
