"""The table of listings."""

from __future__ import annotations

from sqlalchemy import Column, ForeignKey, String, Table, Text

from relay.db.schema.base import at, metadata

listing = Table(
    "listing",
    metadata,
    Column("id", String, primary_key=True),
    Column("repo_id", ForeignKey("repo.id"), nullable=False, unique=True),
    Column("name", String, nullable=False),
    Column("category", String, nullable=True),
    Column("screenshots", Text, nullable=False),  # paths, one a line: none has a control character
    Column("readme_images", String, nullable=False),
    at("created_at"),
    at("updated_at"),
)
