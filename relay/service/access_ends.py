"""What ends with somebody's rights: whatever they had prepared in a repository and may not finish any more.

A prepared seal is a root of the collector and is signed later, perhaps much. When a repository is closed, or
somebody leaves it, what they may no longer finish goes, and with it the bytes that nothing else needs.
"""

from __future__ import annotations

from collections.abc import Sequence

from relay.db import seal as seals
from relay.db.engine.database import Tx
from relay.events import log
from relay.events.log import Logged
from relay.service.attention import social

NAME = "access"
KINDS = tuple(sorted(log.ACCESS))


async def follow(tx: Tx, events: Sequence[Logged]) -> None:
    """Take away what is prepared in these repositories by accounts that may not write there, and the stars
    and watches of those who do not see them."""
    for repo_id in sorted({event.repo_id for event in events if event.repo_id is not None}):
        await tx.run(seals.DROP_UNFINISHABLE, repo_id=repo_id)
        await social.drop_hidden(tx, repo_id)
