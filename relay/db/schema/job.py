"""The table of jobs."""

from __future__ import annotations

from sqlalchemy import BigInteger, Column, Index, Integer, String, Table, Text, text

from relay.db.schema.base import at, metadata

job = Table(
    "job",
    metadata,
    Column("id", String, primary_key=True),
    Column("kind", String, nullable=False),
    Column("key", String, unique=True),  # periodic work: kind:hour
    Column("lane", String),  # of those of one lane a pace lets only so many run at once
    Column("data", Text, nullable=False),
    Column("attempts", Integer, nullable=False, default=0),
    Column("error", Text),
    Column("leased_until", BigInteger),
    at("run_at"),
    at("done_at", True),
    Index(
        "ix_job_open",
        "kind",
        "run_at",
        sqlite_where=text("done_at IS NULL"),
        postgresql_where=text("done_at IS NULL"),
    ),
)
