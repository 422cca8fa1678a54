"""Removes the prepared seals of accounts from repositories where they may no longer write.

A prepared seal is a root of the collector and may be large. When a repository is closed, or somebody leaves
it, the seals they can no longer finalize are deleted, and the collector frees the bytes that nothing else
needs.
"""

from __future__ import annotations

from collections.abc import Sequence

from relay.db import seal as seals
from relay.db.engine.database import Tx
from relay.domain.attention import social
from relay.events import log
from relay.events.log import Logged

NAME = "access"
KINDS = tuple(sorted(log.ACCESS))


async def follow(tx: Tx, events: Sequence[Logged]) -> None:
    """Delete the prepared seals of accounts without write access to these repositories, and the stars and
    watches of accounts that no longer see them."""
    for repo_id in sorted({event.repo_id for event in events if event.repo_id is not None}):
        await tx.run(seals.DROP_UNFINISHABLE, repo_id=repo_id)
        await social.drop_hidden(tx, repo_id)
