"""Tables of stored bytes."""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    ForeignKey,
    ForeignKeyConstraint,
    Index,
    Integer,
    LargeBinary,
    String,
    Table,
)

from relay.db.schema.base import BY_KEY, COUNTED, at, metadata

pack = Table(
    "pack",
    metadata,
    Column("id", COUNTED, primary_key=True, autoincrement=True),
    Column("name", String, nullable=False, unique=True),  # never reused
    Column("size", BigInteger, nullable=False),
    at("created_at"),
)

# Keyed by place, so that an upload needs no generated ids back and goes in with three bulk statements.
frame = Table(
    "frame",
    metadata,
    Column("pack_id", ForeignKey("pack.id"), primary_key=True),
    Column("offset", BigInteger, primary_key=True),
    Column("stored_len", Integer, nullable=False),
    Column("raw_len", Integer, nullable=False),
    Column("codec", Integer, nullable=False),
    **BY_KEY,
)

object_ = Table(
    "object",
    metadata,
    Column("digest", LargeBinary, primary_key=True),
    Column("pack_id", BigInteger, nullable=False),
    Column("frame_offset", BigInteger, nullable=False),
    Column("offset", Integer, nullable=False),  # inside the raw frame
    Column("size", BigInteger, nullable=False),
    Column("directory", Boolean, nullable=False),  # a tree directory: `digest` is not the BLAKE3 of its bytes
    at("last_seen"),
    ForeignKeyConstraint(["pack_id", "frame_offset"], ["frame.pack_id", "frame.offset"]),
    Index("ix_object_frame", "pack_id", "frame_offset"),
    **BY_KEY,
)

repo_object = Table(
    "repo_object",
    metadata,
    Column("repo_id", ForeignKey("repo.id"), primary_key=True),
    Column("digest", LargeBinary, primary_key=True),
    **BY_KEY,
)

# Objects that a repository reads because a proposal from another one names them. They count for its owner
# from the merge on.
lent_object = Table(
    "lent_object",
    metadata,
    Column("repo_id", ForeignKey("repo.id"), primary_key=True),
    Column("digest", LargeBinary, primary_key=True),
    **BY_KEY,
)

# Files above the blob cap: read and compared with their digest once, when the row was made. While a row
# stands, the collector keeps its manifest and every chunk.
chunked_file = Table(
    "chunked_file",
    metadata,
    Column("repo_id", ForeignKey("repo.id"), primary_key=True),
    Column("digest", LargeBinary, primary_key=True),  # BLAKE3 of the file's bytes
    Column("manifest", LargeBinary, nullable=False),  # the object that lists its chunks
    Column("size", BigInteger, nullable=False),
    at("last_seen"),
    **BY_KEY,
)
