"""The table of signed publications."""

from __future__ import annotations

from sqlalchemy import Column, ForeignKey, LargeBinary, Table

from relay.db.schema.base import BY_KEY, at, metadata

# Of a release as its assets are: it goes when one of them comes or goes.
publication = Table(
    "publication",
    metadata,
    Column("release_id", ForeignKey("release.id"), primary_key=True),
    Column("repo_id", ForeignKey("repo.id"), nullable=False, index=True),
    Column("signature", LargeBinary, nullable=False),
    Column("device_key_id", ForeignKey("device_key.id"), nullable=False),
    at("created_at"),
    **BY_KEY,
)
