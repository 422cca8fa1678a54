"""Ends a signed merge that waits, because it no longer applies or somebody turned it off."""

from __future__ import annotations

from relay.caller import View
from relay.db import seal as seals
from relay.db.engine.database import Author, Tx
from relay.domain.proposal.rows import auto_merge as rows
from relay.events.hub import Hub

DROPPED = "proposal.auto_drop"
NODE = Author()  # so that whoever caused it hears of it too


async def drop(tx: Tx, hub: Hub, repo_id: str, number: int, reason: str) -> None:
    """Delete the signed merge of a proposal that waits to land. The inbox of its signer says that the
    proposal must be merged again."""
    dropped = await forget(tx, repo_id, number)
    if dropped is not None:
        await hub.announce(
            tx, repo_id, DROPPED, number=number, author=NODE, account_id=dropped.account_id, reason=reason
        )


async def forget(tx: Tx, repo_id: str, number: int) -> rows.AutoRow | None:
    """Delete the waiting merge of a proposal, and its prepared seals. Returns its row, or None if there was
    none."""
    of = {"of_repo": repo_id, "of_number": number}
    row = await tx.one(rows.ONE, **of)
    if row is None:
        return None
    waiting = rows.to_row(row)
    await tx.run(rows.DROP, **of)
    await tx.run(seals.DROP_PREPARED, prepare_id=waiting.prepare_id)
    return waiting


async def base_moved(tx: Tx, view: View, branch_id: str) -> None:
    """Drop all signed merges into this branch, because its head has changed and they no longer apply."""
    for (number,) in await tx.all(rows.OF_BASE, of_repo=view.repo.id, branch_id=branch_id):
        await drop(tx, view.node.hub, view.repo.id, number, "base_moved")
