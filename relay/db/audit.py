"""Statements on the audit log."""

from __future__ import annotations

from sqlalchemy import bindparam, insert

from relay.db.schema import audit

_COLUMNS = ("at", "actor", "action", "subject", "data")
INSERT = insert(audit).values({name: bindparam(name) for name in _COLUMNS})
