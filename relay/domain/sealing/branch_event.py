"""Writes the event of a branch that moved to a new seal."""

from __future__ import annotations

from relay.caller import View
from relay.db.engine.database import Tx
from relay.db.ref import RefRow


async def announce_move(tx: Tx, view: View, ref: RefRow, head: str, before: str | None) -> None:
    """Write the event of a branch that moved. `head`: the last of the new seals. `before`: the head before
    them."""
    await view.node.hub.announce(
        tx, view.repo.id, "seal.create", branch=ref.name, branch_id=ref.id, head=head, before=before
    )
