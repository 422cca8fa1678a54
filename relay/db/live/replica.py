"""SQL statements on replicas, on the answers to their updates, and on their device keys."""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import bindparam, delete, insert, select, update

from relay.db.engine.database import Row
from relay.db.schema.account import device_key
from relay.db.schema.live import replica, update_answer


@dataclass(slots=True, frozen=True)
class ReplicaRow:
    """A replica: an id under which a working copy numbers its updates. `highest`: the highest update number
    that was answered; `settled`: the update number up to which the stored answers have been deleted."""

    id: int
    branch_id: str
    account_id: str
    device_key_id: str
    settled: int
    highest: int


@dataclass(slots=True, frozen=True)
class KeyRow:
    id: str
    account_id: str
    ed25519: bytes
    registration: bytes
    created_at: int
    revoked_at: int | None
    name: str


ONE = select(
    replica.c.id,
    replica.c.branch_id,
    replica.c.account_id,
    replica.c.device_key_id,
    replica.c.settled,
    replica.c.highest,
).where(replica.c.id == bindparam("replica_id"))
INSERT = insert(replica)
PASS = (
    update(replica)
    .where(replica.c.id == bindparam("replica_id"))
    .values(settled=bindparam("to_settled"), highest=bindparam("to_highest"))
)

ANSWERS = select(update_answer.c.n, update_answer.c.answer).where(
    update_answer.c.replica == bindparam("replica_id"),
    update_answer.c.n.in_(bindparam("numbers", expanding=True)),
)
ANSWER = insert(update_answer)
FORGET = delete(update_answer).where(
    update_answer.c.replica == bindparam("replica_id"), update_answer.c.n <= bindparam("settled")
)

KEY = select(
    device_key.c.id,
    device_key.c.account_id,
    device_key.c.ed25519,
    device_key.c.registration,
    device_key.c.created_at,
    device_key.c.revoked_at,
    device_key.c.name,
).where(device_key.c.id == bindparam("key_id"))


def to_row(columns: Row) -> ReplicaRow:
    return ReplicaRow(*columns)


def to_key(columns: Row) -> KeyRow:
    return KeyRow(*columns)
