"""Tables of security advisories and the packages that they affect."""

from __future__ import annotations

from sqlalchemy import Column, ForeignKey, LargeBinary, String, Table

from relay.db.schema.base import BY_KEY, at, metadata

advisory = Table(
    "advisory",
    metadata,
    Column("id", String, primary_key=True),  # in the order of publication
    Column("repo_id", ForeignKey("repo.id"), nullable=False, index=True),
    Column("record", LargeBinary, nullable=False),  # OSV, as JSON
    at("published_at"),
)

advisory_package = Table(
    "advisory_package",
    metadata,
    Column("ecosystem", String, primary_key=True),
    Column("name", String, primary_key=True),  # as `localstore.core.dependencies.key` folds it
    Column("advisory_id", ForeignKey("advisory.id"), primary_key=True, index=True),
    **BY_KEY,
)
