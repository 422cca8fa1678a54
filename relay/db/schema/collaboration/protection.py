"""The table of protection rules."""

from __future__ import annotations

from sqlalchemy import Boolean, Column, ForeignKey, Integer, String, Table

from relay.db.schema.base import BY_KEY, metadata

protection = Table(
    "protection",
    metadata,
    Column("repo_id", ForeignKey("repo.id"), primary_key=True),
    Column("pattern", String, primary_key=True),
    Column("require_review", Boolean, nullable=False),
    Column("require_checks", Boolean, nullable=False),
    Column("lock_writes", Boolean, nullable=False),
    Column("lock_deletions", Boolean, nullable=False),
    Column("required_approvals", Integer, nullable=False),
    Column("require_resolution", Boolean, nullable=False),
    Column("fresh_approvals", Boolean, nullable=False),
    **BY_KEY,
)
