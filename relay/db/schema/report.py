"""The table of security reports."""

from __future__ import annotations

from sqlalchemy import Column, ForeignKey, Index, String, Table, Text

from relay.db.schema.base import at, metadata

report = Table(
    "report",
    metadata,
    Column("id", String, primary_key=True),  # in the order of creation
    Column("repo_id", ForeignKey("repo.id"), nullable=False),
    Column("title", Text, nullable=False),
    Column("body", Text, nullable=False),
    Column("severity", String, nullable=False),
    Column("state", String, nullable=False),  # new, triaged, published, dismissed
    Column("reporter_id", ForeignKey("account.id"), nullable=False),
    at("created_at"),
    at("decided_at", True),
    Index("ix_report_listed", "repo_id", "id"),
    Index("ix_report_of_state", "repo_id", "state", "id"),
    Index("ix_report_posted", "reporter_id", "created_at"),
)
