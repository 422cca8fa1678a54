"""The audit: checks that all stored bytes match their digests, and that everything to which something refers
is stored.

It reads everything: each object against its digest, each seal against its key and its place in history, each
tree against its root, each live lane against its log. It also recounts the usage that counts against quotas,
and compares the roles of organisations' admins with the memberships. Clients may work meanwhile; the
collector must not run.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable

from relay.db.engine.damage import find_damage
from relay.db.engine.database import Database
from relay.domain.upkeep.verification import (
    assets,
    chunked,
    frontier,
    memberships,
    packs,
    seals,
    trees,
    usage,
)
from relay.objects.store import ObjectStore

WAY_OUT = "restore the last backup that is whole: relay restore"
PARTS: tuple[Callable[[Database, ObjectStore], AsyncIterator[str]], ...] = (
    packs.check,
    seals.check,
    trees.check,
    chunked.check,
    frontier.check,
    assets.check,
    usage.check,
    memberships.check,
)


async def audit(db: Database, store: ObjectStore) -> AsyncIterator[str]:
    """Yields one line for each error that the audit finds. Unreadable rows of a damaged database are errors
    too; the rest is still checked."""
    for line in await db.damages():
        yield f"database: {line}; {WAY_OUT}"
    for part in PARTS:
        try:
            async for finding in part(db, store):
                yield finding
        except Exception as error:
            if (damage_text := find_damage(error)) is None:
                raise
            yield f"{part.__module__.rpartition('.')[2]}: the database is damaged ({damage_text}); {WAY_OUT}"
