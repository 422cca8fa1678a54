"""Tables of the live frontier (docs/design/004)."""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    String,
    Table,
    text,
)

from relay.db.schema.base import BY_KEY, at, metadata

lane = Table(
    "lane",
    metadata,
    Column("branch_id", ForeignKey("ref.id"), primary_key=True),
    Column("path", String, primary_key=True),
    Column("kind", String, nullable=False),  # text, blob, chunked, gone
    Column("gen", BigInteger, nullable=False),
    Column("epoch", Integer, nullable=False),
    Column("ver", BigInteger, nullable=False),
    Column("digest", LargeBinary, nullable=False),  # of the bytes now
    Column("size", BigInteger, nullable=False),
    Column("genesis", LargeBinary),  # digest of this epoch's genesis text, where `digest` is another
    Column("edited", Boolean, nullable=False, default=False),  # this epoch's log holds operations
    Column("last_replica", BigInteger, nullable=False),
    Column("last_seq", BigInteger, nullable=False),
    Column("second_seq", BigInteger, nullable=False),  # the last by any replica but last_replica
    Index("ix_lane_ver", "branch_id", "ver"),
    Index(
        "ix_lane_edited",
        "branch_id",
        "ver",
        sqlite_where=text("edited = 1"),
        postgresql_where=text("edited"),
    ),
    **BY_KEY,
)

# Directories of the frontier: what makes "is this new file a directory already?" one indexed question.
lane_dir = Table(
    "lane_dir",
    metadata,
    Column("branch_id", ForeignKey("ref.id"), primary_key=True),
    Column("path", String, primary_key=True),
    Column("files", BigInteger, nullable=False),  # files below, at any depth; 0: gone
    **BY_KEY,
)

lane_log = Table(
    "lane_log",
    metadata,
    Column("branch_id", ForeignKey("ref.id"), primary_key=True),
    Column("gen", BigInteger, primary_key=True),
    Column("epoch", Integer, primary_key=True),
    Column("seq", BigInteger, primary_key=True),
    Column("part", Integer, primary_key=True),  # an update may hold several operations
    Column("operation", LargeBinary, nullable=False),
    Column("account_id", String, nullable=False),
    Column("device_key_id", String, nullable=False),
)

lane_final = Table(
    "lane_final",
    metadata,
    Column("branch_id", ForeignKey("ref.id"), primary_key=True),
    Column("gen", BigInteger, primary_key=True),
    Column("epoch", Integer, primary_key=True),
    Column("genesis", LargeBinary, nullable=False),
    Column("state", LargeBinary),  # None: genesis and the log give it
)

replica = Table(
    "replica",
    metadata,
    Column("id", BigInteger, primary_key=True),
    Column("branch_id", ForeignKey("ref.id"), nullable=False, index=True),
    Column("account_id", ForeignKey("account.id"), nullable=False),
    Column("device_key_id", ForeignKey("device_key.id"), nullable=False),
    Column("settled", BigInteger, nullable=False, default=0),
    Column("highest", BigInteger, nullable=False, default=0),
    at("created_at"),
)

update_answer = Table(
    "update_answer",
    metadata,
    Column("replica", ForeignKey("replica.id"), primary_key=True),
    Column("n", BigInteger, primary_key=True),
    Column("answer", LargeBinary, nullable=False),  # msgpack: the members of UpdateAnswer in order
    **BY_KEY,
)

# What accepted live updates changed, a row for each request. It stays: a seal names the range it took in.
live_batch = Table(
    "live_batch",
    metadata,
    Column("branch_id", ForeignKey("ref.id"), primary_key=True),
    Column("seq", BigInteger, primary_key=True),  # of its last change
    Column(
        "changes", LargeBinary, nullable=False
    ),  # who changed which path when; see `relay.domain.history.live_update_format`
    Column("edits", LargeBinary),  # the signed updates of edits; None: there are none
)

# What listeners of a branch are sent, for those in other processes and those who were away for a moment.
live_frame = Table(
    "live_frame",
    metadata,
    Column("branch_id", ForeignKey("ref.id"), primary_key=True),
    Column("seq", BigInteger, primary_key=True),  # where the frontier stands after it
    Column("after", BigInteger, nullable=False),  # and before
    Column("body", LargeBinary),  # JSON, see `relay.events.channels`; None: it is too large to travel
    at("created_at"),
    Index("ix_live_frame_created_at", "created_at"),
)

checkpoint = Table(
    "checkpoint",
    metadata,
    Column("id", String, primary_key=True),
    Column("branch_id", ForeignKey("ref.id"), nullable=False),
    Column("seq", BigInteger, nullable=False),
    Column("reason", String, nullable=False),  # turn, idle
    Column("turn_id", String),
    at("created_at"),
    Index("ix_checkpoint_last", "branch_id", "seq", "created_at"),
)
