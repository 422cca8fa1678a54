"""Replicas: the ids under which working copies number their updates. Also keeps the answers to these
updates.
"""

from __future__ import annotations

import secrets

from localstore.core.errors import Invalid
from localstore.core.model.live import ClockReused, ReplicaUnknown
from relay.base.clock import now_ms
from relay.caller import View
from relay.db.engine.database import Tx
from relay.db.live import replica as rows
from relay.db.live.replica import KeyRow, ReplicaRow
from relay.db.ref import RefRow

ID_BITS = 52


def check_id(replica_id: int) -> None:
    """Raise Invalid if the number cannot be a replica id."""
    if not 0 < replica_id < 1 << ID_BITS:
        raise Invalid(f"a replica id is a whole number from 1 to 2**{ID_BITS} - 1", pointer="/replica")


async def find_own(tx: Tx, view: View, ref: RefRow, key: KeyRow, replica_id: int) -> ReplicaRow:
    """Find the caller's replica of this branch. Raises Forbidden if it was issued for another branch, account
    or device."""
    check_id(replica_id)
    row = await tx.one(rows.ONE, replica_id=replica_id)
    replica = rows.to_row(row) if row else None
    if replica is None or (replica.branch_id, replica.account_id, replica.device_key_id) != (
        ref.id,
        view.me.account_id,
        key.id,
    ):
        raise ReplicaUnknown(
            "this replica id was not issued to this device on this branch; bootstrap without one"
        )
    return replica


async def issue(tx: Tx, view: View, ref: RefRow, key: KeyRow) -> int:
    """Issue a new replica id for the caller's device."""
    replica = secrets.randbelow((1 << ID_BITS) - 1) + 1
    await tx.run(
        rows.INSERT,
        id=replica,
        branch_id=ref.id,
        account_id=view.me.account_id,
        device_key_id=key.id,
        settled=0,
        highest=0,
        created_at=now_ms(),
    )
    return replica


def require_clock(replica: ReplicaRow, n: int) -> None:
    """Raise ClockReused if `n`, the highest update number of the working copy, is lower than the highest
    number that the relay knows."""
    if n < replica.highest:
        raise ClockReused(
            "this folder's records are older than what it has sent; bootstrap without a replica"
        )


async def settle(tx: Tx, replica: ReplicaRow, settled: int, highest: int) -> None:
    """Delete the answers to the updates up to the number `settled`, which the device has received. Also
    record that numbers up to `highest` are used."""
    if settled > replica.settled:
        await tx.many(rows.FORGET, [{"replica_id": replica.id, "settled": settled}])
    passed = {"replica_id": replica.id, "to_settled": max(settled, replica.settled), "to_highest": highest}
    await tx.many(rows.PASS, [passed])
