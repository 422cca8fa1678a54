"""The audit: everything that is stored is what it says it is, and everything that is named is there.

It reads all of it: each object against its digest, each seal against its key and its place in history, each
tree against its root, each live lane against its log; and it counts again what is under a quota. Work of
others may go on; the collector must not.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable

from relay.db.engine.database import Database
from relay.objects.store import ObjectStore
from relay.service.storage.verification import assets, chunked, frontier, packs, seals, trees, usage

PARTS: tuple[Callable[[Database, ObjectStore], AsyncIterator[str]], ...] = (
    packs.check,
    seals.check,
    trees.check,
    chunked.check,
    frontier.check,
    assets.check,
    usage.check,
)


async def audit(db: Database, store: ObjectStore) -> AsyncIterator[str]:
    """One line for each thing that is wrong; none: all is well."""
    for part in PARTS:
        async for finding in part(db, store):
            yield finding
