"""The table of branches and tags."""

from __future__ import annotations

from sqlalchemy import BigInteger, Column, ForeignKey, Index, LargeBinary, String, Table, text

from relay.db.schema.base import at, metadata

ref = Table(
    "ref",
    metadata,
    Column("id", String, primary_key=True),
    Column("repo_id", ForeignKey("repo.id"), nullable=False),
    Column("type", String, nullable=False),  # branch, tag
    Column("name", String, nullable=False),
    Column("head", String),  # seal id
    Column("seq", BigInteger, nullable=False, default=0),  # counter of live updates
    Column("sealed_seq", BigInteger, nullable=False, default=0),  # `seq` that the head seals
    Column("base", LargeBinary),  # root of the tree that the frontier began with; None: it began empty
    at("created_at"),
    at("updated_at"),
    at("deleted_at", True),
    Index(
        "uq_ref_living",
        "repo_id",
        "type",
        "name",
        unique=True,
        sqlite_where=text("deleted_at IS NULL"),
        postgresql_where=text("deleted_at IS NULL"),
    ),
)
