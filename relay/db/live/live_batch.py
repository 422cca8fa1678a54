"""SQL statements on the live updates that a seal contains."""

from __future__ import annotations

from sqlalchemy import BigInteger, and_, bindparam, cast, delete, func, insert, select

from relay.db.schema.account import account
from relay.db.schema.live import live_batch
from relay.db.schema.seal import seal, seal_live

_BRANCH = live_batch.c.branch_id == bindparam("branch_id")
_RANGE = and_(_BRANCH, live_batch.c.seq > bindparam("after_seq"), live_batch.c.seq <= bindparam("upto_seq"))

# Bytes of the rows, as they count against the owner's quota.
BYTES = cast(
    func.coalesce(
        func.sum(func.length(live_batch.c.changes) + func.coalesce(func.length(live_batch.c.edits), 0)), 0
    ),
    BigInteger,
)

INSERT = insert(live_batch)
SEALED = insert(seal_live)
RANGE_OF = (
    select(seal_live.c.branch_id, seal_live.c.after_seq, seal_live.c.upto_seq)
    .select_from(seal_live.join(seal, seal.c.id == seal_live.c.seal_id))
    .where(seal_live.c.seal_id == bindparam("seal_id"), seal.c.repo_id == bindparam("repo_id"))
)
SOME = (
    select(live_batch.c.seq, live_batch.c.changes, live_batch.c.edits)
    .where(_RANGE)
    .order_by(live_batch.c.seq)
    .limit(bindparam("limit"))
)
CHANGES = select(live_batch.c.changes).where(_RANGE).order_by(live_batch.c.seq)
COUNT = select(func.count()).select_from(live_batch).where(_RANGE)
DROP = delete(live_batch).where(_BRANCH, live_batch.c.seq.in_(bindparam("seqs", expanding=True)))
_UNSEALED = and_(_BRANCH, live_batch.c.seq > bindparam("sealed"))
UNSEALED_BYTES = select(BYTES).where(_UNSEALED)
DROP_UNSEALED = delete(live_batch).where(_UNSEALED)
ACCOUNTS = select(account.c.id, account.c.handle, account.c.kind).where(
    account.c.id.in_(bindparam("ids", expanding=True))
)
