"""Tables of seals."""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    ForeignKey,
    Integer,
    LargeBinary,
    String,
    Table,
    Text,
    false,
)

from relay.db.schema.base import BY_KEY, at, metadata

seal = Table(
    "seal",
    metadata,
    Column("id", String, primary_key=True),
    Column("repo_id", ForeignKey("repo.id"), nullable=False, index=True),
    Column("branch", String, nullable=False),
    Column("generation", BigInteger, nullable=False),  # 1 + the parents' highest: ancestors have a lower one
    Column("rank", BigInteger),  # above all that it came from; None: as the generation, nothing was merged
    Column("root", LargeBinary, nullable=False),  # content digest
    Column("payload", LargeBinary, nullable=False),
    Column("signature", LargeBinary, nullable=False),
    Column("account_id", ForeignKey("account.id"), nullable=False),
    Column("device_key_id", ForeignKey("device_key.id"), nullable=False),
    Column("message", Text, nullable=False),
    at("created_at"),
    # In the order of history: created_at, or the time of what it came from if that is later, which a clock
    # that was set back makes it. None: created_at.
    Column("order_at", BigInteger),
)

# Seals that were made in another repository and belong to this one too: a fork has those that it began with,
# a base those that are proposed to it. Who has a seal has all that came before it. `root`: the partial tree
# that this repository has of it; None: the tree that was signed.
repo_seal = Table(
    "repo_seal",
    metadata,
    Column("repo_id", ForeignKey("repo.id"), primary_key=True),
    Column("seal_id", ForeignKey("seal.id"), primary_key=True, index=True),
    Column("root", LargeBinary),
    **BY_KEY,
)

seal_parent = Table(
    "seal_parent",
    metadata,
    Column("seal_id", ForeignKey("seal.id"), primary_key=True),
    Column("position", Integer, primary_key=True),
    Column("parent_id", String, nullable=False, index=True),
    **BY_KEY,
)

# What a seal was merged from and has not as a parent. All count as ancestors for merge bases; those of some
# strategies stand in history. `strategy`: that of the merge, as its payload names it; None: of a merge.
seal_source = Table(
    "seal_source",
    metadata,
    Column("seal_id", ForeignKey("seal.id"), primary_key=True),
    Column("position", Integer, primary_key=True),
    Column("source_id", String, nullable=False),
    Column("strategy", String),
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
    Column("purpose", String, nullable=False),  # what may land it: seal, seals, merge, auto
    Column("subject", String),  # what it is for, as a text (PrepareRow)
    Column("branch_id", ForeignKey("ref.id"), nullable=False, index=True),
    Column("account_id", String, nullable=False),
    Column("device_key_id", String, nullable=False),
    Column("expected_head", String),
    Column("at_seq", BigInteger),  # live: frontier position; None: explicit trees
    Column("seals", LargeBinary, nullable=False),  # msgpack: payload bytes, root and changes of each seal
    at("expires_at"),
)

blame_cache = Table(
    "blame_cache",
    metadata,
    Column("repo_id", ForeignKey("repo.id"), primary_key=True),
    Column("seal_id", String, primary_key=True),
    Column("path", String, primary_key=True),
    Column("first_parent", Boolean, primary_key=True, server_default=false()),  # along first parents alone
    Column("owners", LargeBinary, nullable=False),
)
