"""Tables of runs and checks."""

from __future__ import annotations

from sqlalchemy import BigInteger, Boolean, Column, ForeignKey, Index, String, Table, Text

from relay.db.schema.base import BY_KEY, at, metadata

run = Table(
    "run",
    metadata,
    Column("id", String, primary_key=True),  # in the order of creation
    Column("repo_id", ForeignKey("repo.id"), nullable=False),
    Column("seal_id", ForeignKey("seal.id"), nullable=False, index=True),
    Column("branch", String, nullable=False),  # of the seal
    Column("folded", String, nullable=False),  # the name whatever its case
    Column("name", String, nullable=False),
    Column("attempt", BigInteger, nullable=False),
    Column("newest", Boolean, nullable=False),  # no later attempt of this name on this seal
    Column("status", String, nullable=False),  # queued, in_progress, completed
    Column("conclusion", String),
    Column("summary", Text),
    Column("details_url", Text),
    Column("reporter_id", ForeignKey("account.id"), nullable=False),
    at("created_at"),
    at("started_at", True),
    at("completed_at", True),
    Index("ix_run_listed", "repo_id", "id"),
    Index("uq_run_attempt", "repo_id", "seal_id", "folded", "attempt", unique=True),
    Index("ix_run_of_branch", "repo_id", "branch", "id"),
    Index("ix_run_of_name", "repo_id", "folded", "id"),
    Index("ix_run_of_status", "repo_id", "status", "id"),
    Index("ix_run_of_conclusion", "repo_id", "conclusion", "id"),
    Index("ix_run_reported", "reporter_id", "created_at"),
)

# The checks of a repository: the enabled ones, and the others that reported last.
known_check = Table(
    "known_check",
    metadata,
    Column("repo_id", ForeignKey("repo.id"), primary_key=True),
    Column("folded", String, primary_key=True),
    Column("name", String, nullable=False),
    Column("enabled", Boolean, nullable=False),
    Column("last_run", String),  # no foreign key: a repository's rows are purged in any order
    **BY_KEY,
)

# How the newest attempts on a seal stand, written with each change of one.
check_rollup = Table(
    "check_rollup",
    metadata,
    Column("repo_id", ForeignKey("repo.id"), primary_key=True),
    Column("seal_id", ForeignKey("seal.id"), primary_key=True),
    Column("total", BigInteger, nullable=False),
    Column("passed", BigInteger, nullable=False),
    Column("failed", BigInteger, nullable=False),
    Column("pending", BigInteger, nullable=False),
    **BY_KEY,
)
