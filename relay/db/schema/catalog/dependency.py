"""The table of dependencies of repositories."""

from __future__ import annotations

from sqlalchemy import Column, ForeignKey, String, Table

from relay.db.schema.base import BY_KEY, metadata

# `depends` of .svc.yaml in the newest seal of the default branch, to be found from the other end.
dependency = Table(
    "dependency",
    metadata,
    Column("name", String, primary_key=True),  # owner/name in lower case
    Column("repo_id", ForeignKey("repo.id"), primary_key=True, index=True),
    **BY_KEY,
)
