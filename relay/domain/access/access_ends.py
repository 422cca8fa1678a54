"""Deletes prepared seals of accounts that may no longer write to their repository. A prepared seal is one
that the relay has computed and that waits for its signature.

The collector keeps everything that a prepared seal refers to, which may be many bytes. An account that may no
longer write to a repository cannot sign its prepared seals there. So they are deleted, and the collector
frees the bytes that nothing else needs.
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
    """Delete what some accounts may no longer have in the repositories of these events: prepared seals of
    accounts that may not write there, and stars and watches of accounts that do not see the repository."""
    for repo_id in sorted({event.repo_id for event in events if event.repo_id is not None}):
        await tx.run(seals.DROP_UNFINISHABLE, repo_id=repo_id)
        await social.drop_hidden(tx, repo_id)
