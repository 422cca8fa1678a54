"""The table of labels."""

from __future__ import annotations

from sqlalchemy import Column, ForeignKey, String, Table, Text

from relay.db.schema.base import BY_KEY, metadata

label = Table(
    "label",
    metadata,
    Column("repo_id", ForeignKey("repo.id"), primary_key=True),
    Column("folded", String, primary_key=True),  # the name, whatever its case
    Column("name", String, nullable=False),
    Column("color", String, nullable=False),  # six lowercase hex digits
    Column("description", Text),
    **BY_KEY,
)
