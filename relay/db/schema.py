"""Every table. Times are integer milliseconds UTC, digests 32 raw bytes, seal ids hex text, ids opaque text.

The migrations in `relay/migrations` make exactly this; a test compares the two.
"""

from __future__ import annotations

from typing import Any

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    ForeignKey,
    ForeignKeyConstraint,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    String,
    Table,
    Text,
    UniqueConstraint,
    text,
)

metadata = MetaData(
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "fk": "fk_%(table_name)s_%(column_0_N_name)s",
        "pk": "pk_%(table_name)s",
    }
)


# An id the database counts. SQLite counts in INTEGER columns only.
_Counted = BigInteger().with_variant(Integer, "sqlite")


# Rows lie in the index of their key, not beside it: for tables of many small rows, all looked up by key.
BY_KEY: dict[str, Any] = {"sqlite_with_rowid": False}


def _at(name: str, nullable: bool = False) -> Column[int]:
    return Column(name, BigInteger, nullable=nullable)


# --- identity

account = Table(
    "account",
    metadata,
    Column("id", String, primary_key=True),  # UUID
    Column("kind", String, nullable=False),  # user, guest
    Column("handle", String, unique=True),
    Column("email", String, unique=True),
    Column("name", String),
    Column("password_hash", String),
    Column("phase", String, nullable=False),
    Column("operator", Boolean, nullable=False, default=False),
    _at("created_at"),
    _at("disabled_at", True),
)

session = Table(
    "session",
    metadata,
    Column("id", String, primary_key=True),  # 32 hex digits: the 16 bytes in the capability token
    Column("account_id", ForeignKey("account.id"), nullable=False, index=True),
    Column("parent_id", ForeignKey("session.id"), index=True),
    Column("kind", String, nullable=False),  # browser, cli, device, guest, script
    Column("label", String, nullable=False),
    Column("device_key_id", String),  # the key that requests of this session are bound to
    Column("caps", String, nullable=False),
    _at("created_at"),
    _at("expires_at"),
    _at("last_used_at", True),
    _at("revoked_at", True),
)

refresh_token = Table(
    "refresh_token",
    metadata,
    Column("hash", LargeBinary, primary_key=True),  # SHA-256; the token itself is never stored
    Column("session_id", ForeignKey("session.id"), nullable=False, index=True),
    _at("expires_at"),
    _at("used_at", True),
)

device_key = Table(
    "device_key",
    metadata,
    Column("id", String, primary_key=True),  # RFC 7638 thumbprint
    Column("account_id", ForeignKey("account.id"), nullable=False, index=True),
    Column("ed25519", LargeBinary, nullable=False),
    Column("x25519", LargeBinary, nullable=False),
    Column("name", String, nullable=False),
    Column("registration", LargeBinary, nullable=False),  # self-signed statement
    Column("caps", String, nullable=False),  # what the key may do without a session; empty: nothing
    _at("created_at"),
    _at("last_used_at", True),
    _at("revoked_at", True),
)

challenge = Table(
    "challenge",
    metadata,
    Column("id", String, primary_key=True),
    Column("purpose", String, nullable=False),  # register, login
    Column("account", String, nullable=False),  # account id, or the handle for a login
    Column("session_id", String),
    Column("ed25519", LargeBinary, nullable=False),
    Column("x25519", LargeBinary, nullable=False),
    Column("name", String, nullable=False),
    Column("secret", LargeBinary, nullable=False),
    _at("expires_at"),
)

pairing_code = Table(
    "pairing_code",
    metadata,
    Column("hash", LargeBinary, primary_key=True),
    Column("account_id", ForeignKey("account.id"), nullable=False),
    _at("expires_at"),
    _at("used_at", True),
)

# Networks from which an account was signed in: guesses from there are counted by themselves.
known_address = Table(
    "known_address",
    metadata,
    Column("account_id", ForeignKey("account.id"), primary_key=True),
    Column("network", String, primary_key=True),  # see `relay.http.address.network`
    _at("seen_at"),
    **BY_KEY,
)

device_code = Table(
    "device_code",
    metadata,
    Column("hash", LargeBinary, primary_key=True),  # SHA-256 of the device code
    Column("user_code", String, nullable=False, unique=True),
    Column("x25519", LargeBinary, nullable=False),
    Column("ed25519", LargeBinary, nullable=False),
    Column("label", String, nullable=False),
    Column("state", String, nullable=False),  # pending, approved, denied
    Column("sealed", LargeBinary),
    Column("interval", Integer, nullable=False),
    _at("polled_at", True),
    _at("expires_at"),
)

nonce = Table(
    "nonce",
    metadata,
    Column("key_id", String, primary_key=True),
    Column("nonce", String, primary_key=True),
    Column("expires_at", BigInteger, nullable=False, index=True),
    **BY_KEY,
)

idempotency = Table(
    "idempotency",
    metadata,
    Column("account_id", String, primary_key=True),
    Column("key", String, primary_key=True),
    Column("request", LargeBinary, nullable=False),  # BLAKE3 of method, path and body
    Column("status", Integer, nullable=False),
    Column("body", LargeBinary, nullable=False),
    Column("expires_at", BigInteger, nullable=False, index=True),
)

# --- repositories

repo = Table(
    "repo",
    metadata,
    Column("id", String, primary_key=True),
    Column("owner_id", ForeignKey("account.id"), nullable=False, index=True),
    Column("name", String, nullable=False),
    Column("kind", String, nullable=False),
    Column("class", String, nullable=False),
    Column("description", Text, nullable=False, default=""),
    Column("default_branch", String, nullable=False),
    Column("state", String, nullable=False, default="active"),  # active, archived, deleted, suspended, killed
    Column("resume_state", String),  # what a suspended or deleted repository returns to
    Column("parent_id", ForeignKey("repo.id")),
    Column("tree_key", LargeBinary, nullable=False),
    Column("tree_key_id", String, nullable=False),
    _at("created_at"),
    _at("updated_at"),
    _at("deleted_at", True),
    _at("purge_at", True),
    UniqueConstraint("owner_id", "name"),
)

repo_alias = Table(
    "repo_alias",
    metadata,
    Column("owner", String, primary_key=True),  # handle
    Column("name", String, primary_key=True),
    Column("repo_id", ForeignKey("repo.id"), nullable=False),
    _at("expires_at"),
)

collaborator = Table(
    "collaborator",
    metadata,
    Column("repo_id", ForeignKey("repo.id"), primary_key=True),
    Column("account_id", ForeignKey("account.id"), primary_key=True, index=True),
    Column("role", String, nullable=False),
    _at("created_at"),
)

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
    _at("created_at"),
    _at("updated_at"),
    _at("deleted_at", True),
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

# --- the live frontier (docs/design/004)

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
    _at("created_at"),
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
    ),  # who changed which path when; see `relay.service.history.live_update_format`
    Column("edits", LargeBinary),  # the signed updates of edits; None: there are none
)

checkpoint = Table(
    "checkpoint",
    metadata,
    Column("id", String, primary_key=True),
    Column("branch_id", ForeignKey("ref.id"), nullable=False),
    Column("seq", BigInteger, nullable=False),
    Column("reason", String, nullable=False),  # turn, idle
    Column("turn_id", String),
    _at("created_at"),
    Index("ix_checkpoint_last", "branch_id", "seq", "created_at"),
)

# --- seals

seal = Table(
    "seal",
    metadata,
    Column("id", String, primary_key=True),
    Column("repo_id", ForeignKey("repo.id"), nullable=False, index=True),
    Column("branch", String, nullable=False),
    Column("generation", BigInteger, nullable=False),  # 1 + the parents' highest: ancestors have a lower one
    Column("root", LargeBinary, nullable=False),  # content digest
    Column("payload", LargeBinary, nullable=False),
    Column("signature", LargeBinary, nullable=False),
    Column("account_id", ForeignKey("account.id"), nullable=False),
    Column("device_key_id", ForeignKey("device_key.id"), nullable=False),
    Column("message", Text, nullable=False),
    _at("created_at"),
)

seal_parent = Table(
    "seal_parent",
    metadata,
    Column("seal_id", ForeignKey("seal.id"), primary_key=True),
    Column("position", Integer, primary_key=True),
    Column("parent_id", String, nullable=False, index=True),
    **BY_KEY,
)

# What a seal changed against its first parent. Without a parent that is its whole tree: no rows.
seal_change = Table(
    "seal_change",
    metadata,
    Column("seal_id", ForeignKey("seal.id"), primary_key=True),
    Column("path", String, primary_key=True),
    Column("kind", String),  # None: removed
    Column("digest", LargeBinary),
    Column("size", BigInteger),
    **BY_KEY,
)

# The live updates that a seal of a frontier took in: those of the branch after one number, up to another.
seal_live = Table(
    "seal_live",
    metadata,
    Column("seal_id", ForeignKey("seal.id"), primary_key=True),
    Column("branch_id", ForeignKey("ref.id"), nullable=False),
    Column("after_seq", BigInteger, nullable=False),
    Column("upto_seq", BigInteger, nullable=False),
    **BY_KEY,
)

prepare = Table(
    "prepare",
    metadata,
    Column("id", String, primary_key=True),
    Column("branch_id", ForeignKey("ref.id"), nullable=False, index=True),
    Column("account_id", String, nullable=False),
    Column("device_key_id", String, nullable=False),
    Column("expected_head", String),
    Column("at_seq", BigInteger),  # live: frontier position; None: explicit trees
    Column("seals", LargeBinary, nullable=False),  # msgpack: payload bytes, root and changes of each seal
    _at("expires_at"),
)

blame_cache = Table(
    "blame_cache",
    metadata,
    Column("repo_id", ForeignKey("repo.id"), primary_key=True),
    Column("seal_id", String, primary_key=True),
    Column("path", String, primary_key=True),
    Column("owners", LargeBinary, nullable=False),
)

# --- bytes

pack = Table(
    "pack",
    metadata,
    Column("id", _Counted, primary_key=True, autoincrement=True),
    Column("name", String, nullable=False, unique=True),  # never reused
    Column("size", BigInteger, nullable=False),
    _at("created_at"),
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
    _at("last_seen"),
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

# Files above the blob cap: read and compared with their digest once, when the row was made. While a row
# stands, the collector keeps its manifest and every chunk.
chunked_file = Table(
    "chunked_file",
    metadata,
    Column("repo_id", ForeignKey("repo.id"), primary_key=True),
    Column("digest", LargeBinary, primary_key=True),  # BLAKE3 of the file's bytes
    Column("manifest", LargeBinary, nullable=False),  # the object that lists its chunks
    Column("size", BigInteger, nullable=False),
    _at("last_seen"),
    **BY_KEY,
)

# --- quotas: what is counted in the transactions of its effects. These tables have no foreign keys, since the
# release before may serve this schema, and knows nothing of them.

# What an account has in its repositories; `deleted_*`: in those that were deleted and can be restored.
# `max_*`: limits of its own, None: those of the node.
account_usage = Table(
    "account_usage",
    metadata,
    Column("account_id", String, primary_key=True),
    *(
        Column(f"{when}{what}", BigInteger, nullable=False, default=0)
        for what in ("bytes", "objects", "repositories")
        for when in ("", "deleted_")
    ),
    *(Column(f"max_{what}", BigInteger) for what in ("bytes", "objects", "repositories")),
    **BY_KEY,
)

# Objects that a repository reaches, and their bytes before compression, whoever else reaches them.
repo_usage = Table(
    "repo_usage",
    metadata,
    Column("repo_id", String, primary_key=True),
    Column("bytes", BigInteger, nullable=False, default=0),
    Column("objects", BigInteger, nullable=False, default=0),
    Column("deleted", Boolean, nullable=False, default=False),  # counted among what is deleted
    **BY_KEY,
)

# New accounts of a network address, and guests of it, since the first one in the window.
address_usage = Table(
    "address_usage",
    metadata,
    Column("address", String, primary_key=True),
    Column("accounts", BigInteger, nullable=False),
    Column("expires_at", BigInteger, nullable=False, index=True),
    **BY_KEY,
)

# One row that readiness writes, to know whether the database takes writes.
heartbeat = Table(
    "heartbeat",
    metadata,
    Column("id", Integer, primary_key=True, autoincrement=False),
    _at("at"),
)

# --- events and jobs

event = Table(
    "event",
    metadata,
    Column("id", _Counted, primary_key=True, autoincrement=False),  # see `Tx.stamp`
    Column("repo_id", ForeignKey("repo.id"), nullable=False, index=True),
    Column("kind", String, nullable=False),  # live, seal, ref, repo
    Column("data", Text, nullable=False),  # JSON: ids, numbers and names, never content
    _at("created_at"),
)

job = Table(
    "job",
    metadata,
    Column("id", String, primary_key=True),
    Column("kind", String, nullable=False),
    Column("key", String, unique=True),  # periodic work: kind:hour
    Column("data", Text, nullable=False),
    Column("attempts", Integer, nullable=False, default=0),
    Column("error", Text),
    Column("leased_until", BigInteger),
    _at("run_at"),
    _at("done_at", True),
    Index(
        "ix_job_open",
        "run_at",
        sqlite_where=text("done_at IS NULL"),
        postgresql_where=text("done_at IS NULL"),
    ),
)

audit = Table(
    "audit",
    metadata,
    Column("id", _Counted, primary_key=True, autoincrement=True),
    _at("at"),
    Column("actor", String, nullable=False),
    Column("action", String, nullable=False),
    Column("subject", String, nullable=False),
    Column("data", Text, nullable=False),
)
