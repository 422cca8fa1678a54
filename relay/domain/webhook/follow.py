"""The follower of the event log that turns events into deliveries to webhooks. Writers of the events do not
wait for it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from relay.db.engine.database import Tx
from relay.domain.webhook import delivery, message
from relay.domain.webhook.rows import webhook as rows
from relay.events.followers import Follow
from relay.events.log import Logged
from relay.node import Node

NAME = "webhooks"
KINDS = tuple(sorted(message.TYPES))


def make_follower(node: Node) -> Follow:
    """Make the follower that queues deliveries for the jobs of this node."""

    async def follow(tx: Tx, events: Sequence[Logged]) -> None:
        """Queue deliveries of those events that every reader may see. Events for writers or the owner are
        never sent."""
        for_readers = [
            (event.repo_id, event) for event in events if event.audience == "reader" and event.repo_id
        ]
        by_repo: dict[str, list[rows.FollowerHook]] = defaultdict(list)
        repos = sorted({repo_id for repo_id, _ in for_readers})
        for hook in map(rows.FollowerHook._make, await tx.all(rows.HOOKS, repos=repos)):
            by_repo[hook.repo_id].append(hook)
        for repo_id, event in for_readers:
            type_ = message.TYPES[event.kind][0]
            hooks = [hook for hook in by_repo[repo_id] if f" {type_} " in hook.events]
            if not hooks:
                continue
            body = await message.of_event(tx, event, repo_id, f"{hooks[0].owner}/{hooks[0].name}")
            await delivery.keep(tx, event.id, repo_id, type_, body)
            for hook in hooks:
                failing = hook.failing_since is not None
                await delivery.queue(node, tx, hook.id, hook.host, event.id, failing=failing)

    return follow
