"""Automatic checkpoints between seals. A checkpoint is a disposable mark of a branch. There is one for each
turn of a program that edits (SVC_TURN), and one when the branch becomes quiet.

The collector does not keep bytes for them. A checkpoint replaces the one before it, because only the last
one is asked for.
"""

from __future__ import annotations

from relay.base.clock import now_ms
from relay.base.ids import new_id
from relay.db.engine.database import Tx
from relay.db.live import lane as rows
from relay.node import Node

IDLE = 30_000  # milliseconds without an update after which a branch gets a checkpoint


async def when_idle(tx: Tx, node: Node, branch_id: str) -> None:
    """Queue a job that checks whether this branch has been quiet for `IDLE`. All updates of the same half
    minute share one job. The job runs when the last of these updates is old enough."""
    window = now_ms() // IDLE
    await node.jobs.add(
        tx,
        "checkpoint",
        {"branch_id": branch_id},
        key=f"checkpoint:{branch_id}:{window}",
        run_at=(window + 2) * IDLE,
    )


async def add_for_turn(tx: Tx, branch_id: str, seq: int, turn_id: str | None) -> bool:
    """Add a checkpoint if the turn `turn_id` of an editing program differs from the turn of the last
    checkpoint. Returns whether one was added."""
    if turn_id is None:
        return False
    last = await tx.one(rows.LAST_CHECKPOINT, branch_id=branch_id)
    if last is not None and last[1] == turn_id:
        return False
    await _mark(tx, branch_id, seq, "turn", turn_id)
    return True


async def if_idle(node: Node, branch_id: str) -> bool:
    """Add a checkpoint if the branch has changed, and has then been quiet for `IDLE`. Returns whether one was
    added. Run as a job."""
    async with node.db.write(f"idle checkpoint {branch_id}") as tx:
        seq = await tx.value(rows.QUIET, branch_id=branch_id, before=now_ms() - IDLE)
        if seq is not None:
            await _mark(tx, branch_id, seq, "idle", None)
    return seq is not None


async def _mark(tx: Tx, branch_id: str, seq: int, reason: str, turn_id: str | None) -> None:
    await tx.run(rows.DROP_CHECKPOINTS, branch_id=branch_id)
    await tx.run(
        rows.CHECKPOINT,
        id=new_id(),
        branch_id=branch_id,
        seq=seq,
        reason=reason,
        turn_id=turn_id,
        created_at=now_ms(),
    )
