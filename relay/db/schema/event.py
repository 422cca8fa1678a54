"""The table of events."""

from __future__ import annotations

from sqlalchemy import Column, ForeignKey, String, Table, Text

from relay.db.schema.base import COUNTED, at, metadata

event = Table(
    "event",
    metadata,
    Column("id", COUNTED, primary_key=True, autoincrement=False),  # see `Tx.stamp`
    Column("repo_id", ForeignKey("repo.id"), nullable=False, index=True),
    Column("kind", String, nullable=False),  # live, seal, ref, repo
    Column("data", Text, nullable=False),  # JSON: ids, numbers and names, never content
    at("created_at"),
)
