"""SQL statements on live frames, which tell the listeners of a branch what changed on it."""

from __future__ import annotations

from sqlalchemy import bindparam, func, insert, select

from relay.db.schema.live import live_frame

_COLUMNS = (live_frame.c.after, live_frame.c.seq, live_frame.c.body)
_BRANCH = live_frame.c.branch_id == bindparam("branch_id")

INSERT = insert(live_frame)
# How many there are after a number, and their bytes.
WEIGHT = select(func.count(), func.coalesce(func.sum(func.length(live_frame.c.body)), 0)).where(
    _BRANCH, live_frame.c.seq > bindparam("since")
)
ONE = select(*_COLUMNS).where(_BRANCH, live_frame.c.seq == bindparam("seq"))
SINCE = select(*_COLUMNS).where(_BRANCH, live_frame.c.seq > bindparam("since")).order_by(live_frame.c.seq)
