"""SQL statements on the stored answers of requests with an Idempotency-Key."""

from __future__ import annotations

from sqlalchemy import and_, bindparam, delete, insert, select

from relay.db.schema.idempotency import idempotency

_THIS = and_(idempotency.c.account_id == bindparam("account_id"), idempotency.c.key == bindparam("key"))

ONE = select(idempotency.c.request, idempotency.c.status, idempotency.c.body).where(
    _THIS, idempotency.c.expires_at > bindparam("now")
)
NTH = (
    select(idempotency.c.key)
    .where(idempotency.c.account_id == bindparam("account_id"))
    .order_by(idempotency.c.key)
    .limit(1)
    .offset(bindparam("skip"))
)
DROP = delete(idempotency).where(_THIS)
INSERT = insert(idempotency)
