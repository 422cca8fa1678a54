"""SQL statements on the networks (address ranges) from which accounts have signed in."""

from __future__ import annotations

from sqlalchemy import and_, bindparam, delete, select, update

from relay.db.engine.upsert import InsertNew
from relay.db.schema.account import account, known_address

_MINE = known_address.c.account_id == bindparam("account")
_HERE = known_address.c.network == bindparam("place")

KNOWN = (
    select(known_address.c.seen_at)
    .select_from(known_address.join(account, account.c.id == known_address.c.account_id))
    .where(account.c.handle == bindparam("handle"), _HERE, known_address.c.seen_at > bindparam("since"))
)
INSERT = InsertNew(known_address)
SEEN = update(known_address).where(_MINE, _HERE).values(seen_at=bindparam("now"))
_LATEST = (
    select(known_address.c.network)
    .where(_MINE)
    .order_by(known_address.c.seen_at.desc(), known_address.c.network)
    .limit(bindparam("keep"))
)
DROP_OLD = delete(known_address).where(
    and_(_MINE, (known_address.c.seen_at < bindparam("before")) | known_address.c.network.not_in(_LATEST))
)
