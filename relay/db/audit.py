"""Statements on the audit log."""

from __future__ import annotations

from sqlalchemy import insert

from relay.db.schema import audit

INSERT = insert(audit)
