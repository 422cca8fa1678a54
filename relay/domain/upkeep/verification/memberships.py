"""Compares the roles that accounts have through organisations with the memberships."""

from __future__ import annotations

from collections.abc import AsyncIterator

from relay.db.engine.database import Database
from relay.domain.access.rows import organisation_roles as rows
from relay.objects.store import ObjectStore


async def check(db: Database, _: ObjectStore) -> AsyncIterator[str]:
    """Yields a line for each role through an organisation whose account is not a member, and for each member
    who lacks such a role."""
    async with db.read(snapshot=True) as tx:
        stray, missing = await tx.all(rows.STRAY), await tx.all(rows.MISSING)
    for repo_id, account_id in stray:
        yield f"repository {repo_id}: account {account_id} has a role by its owner that no membership gives"
    for repo_id, account_id in missing:
        yield f"repository {repo_id}: account {account_id} is a member of its owner, and lacks the role by it"
