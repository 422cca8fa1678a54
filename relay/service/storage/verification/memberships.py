"""Compares the roles that admins have by their organisations with who is an admin of them."""

from __future__ import annotations

from collections.abc import AsyncIterator

from relay.db.collaboration import organisation as rows
from relay.db.engine.database import Database
from relay.objects.store import ObjectStore


async def check(db: Database, _: ObjectStore) -> AsyncIterator[str]:
    """One line for each role that no membership gives, and for each that is missing."""
    async with db.read(snapshot=True) as tx:
        stray, missing = await tx.all(rows.STRAY), await tx.all(rows.MISSING)
    for repo_id, account_id in stray:
        yield f"repository {repo_id}: account {account_id} has role owner, but is not an admin of its owner"
    for repo_id, account_id in missing:
        yield f"repository {repo_id}: account {account_id} is an admin of its owner, and has no role by it"
