"""Statements on remembered answers of creating requests."""

from __future__ import annotations

from sqlalchemy import and_, bindparam, delete, insert, select

from relay.db.schema.idempotency import idempotency

_THIS = and_(idempotency.c.account_id == bindparam("account_id"), idempotency.c.key == bindparam("key"))

ONE = select(idempotency.c.request, idempotency.c.body).where(
    _THIS, idempotency.c.expires_at > bindparam("now")
)
DROP = delete(idempotency).where(_THIS)
INSERT = insert(idempotency)
