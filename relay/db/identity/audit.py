"""Statements on the audit log."""

from __future__ import annotations

from sqlalchemy import bindparam, insert

from relay.db.schema.account import audit

INSERT = insert(audit).values(
    {name: bindparam(name) for name in ("at", "actor", "action", "subject", "data")}
)
