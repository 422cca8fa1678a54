"""Tables of releases and their assets."""

from __future__ import annotations

from sqlalchemy import BigInteger, Column, ForeignKey, Index, LargeBinary, String, Table, Text

from relay.db.schema.base import BY_KEY, at, metadata

release = Table(
    "release",
    metadata,
    Column("id", String, primary_key=True),  # in the order of creation
    Column("repo_id", ForeignKey("repo.id"), nullable=False),
    Column("version", String, nullable=False),
    Column("seal_id", ForeignKey("seal.id"), nullable=False, index=True),
    Column("notes", Text, nullable=False),
    Column("author_id", ForeignKey("account.id"), nullable=False),
    at("created_at"),
    Index("uq_release_repo_id_version", "repo_id", "version", unique=True),
    Index("ix_release_repo_id_id", "repo_id", "id"),
)

# While a row stands, the collector keeps the bytes: an object, or above the blob cap a file in chunks.
release_asset = Table(
    "release_asset",
    metadata,
    Column("release_id", ForeignKey("release.id"), primary_key=True),
    Column("folded", String, primary_key=True),  # the name as a file system compares it that ignores case
    Column("name", String, nullable=False),
    Column("digest", LargeBinary, nullable=False),
    Column("size", BigInteger, nullable=False),
    Column("content_type", String, nullable=False),
    Column("uploader_id", ForeignKey("account.id"), nullable=False),
    at("created_at"),
    **BY_KEY,
)
