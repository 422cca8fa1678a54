"""Tables of repositories and of the roles in them."""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    ForeignKey,
    Index,
    LargeBinary,
    String,
    Table,
    Text,
    UniqueConstraint,
)

from relay.db.schema.base import BY_KEY, at, metadata

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
    Column("parent_id", ForeignKey("repo.id"), index=True),  # it was forked from
    Column("tree_key", LargeBinary, nullable=False),
    Column("tree_key_id", String, nullable=False),
    at("created_at"),
    at("updated_at"),
    at("deleted_at", True),
    at("purge_at", True),
    Column("policy", BigInteger),  # number of its path policy; None: who sees it sees all of it
    Column("partial", Boolean),  # of some entries of its trees it has digests alone
    UniqueConstraint("owner_id", "name"),
)

# Repositories whose seals this one may hold: those it descends from, and those that proposals came from. They
# may be purged since.
lineage = Table(
    "lineage",
    metadata,
    Column("repo_id", ForeignKey("repo.id"), primary_key=True),
    Column("of_id", String, primary_key=True, index=True),
    **BY_KEY,
)

# Tree keys that seals of this repository were made with, beside the one that it has now.
tree_key = Table(
    "tree_key",
    metadata,
    Column("repo_id", ForeignKey("repo.id"), primary_key=True),
    Column("id", String, primary_key=True),
    Column("key", LargeBinary, nullable=False),
    **BY_KEY,
)

repo_alias = Table(
    "repo_alias",
    metadata,
    Column("owner", String, primary_key=True),  # handle
    Column("name", String, primary_key=True),
    Column("repo_id", ForeignKey("repo.id"), nullable=False),
    at("expires_at"),
)

# Who sees a path and what is below it, unless a longer one says otherwise. A change raises `repo.policy`.
path_policy = Table(
    "path_policy",
    metadata,
    Column("repo_id", ForeignKey("repo.id"), primary_key=True),
    Column("path", String, primary_key=True),
    Column("visibility", String, nullable=False),  # public, private, open
    **BY_KEY,
)

# What became of the rules for paths, and by whom. Their number gives `repo.policy` numbers that never return.
path_change = Table(
    "path_change",
    metadata,
    Column("id", String, primary_key=True),  # in the order of creation
    Column("repo_id", ForeignKey("repo.id"), nullable=False),
    Column("path", String, nullable=False),
    Column("was", String),  # visibility; None: no rule
    Column("became", String),
    Column("author_id", ForeignKey("account.id"), nullable=False),
    at("created_at"),
    Index("ix_path_change_listed", "repo_id", "id"),
)

collaborator = Table(
    "collaborator",
    metadata,
    Column("repo_id", ForeignKey("repo.id"), primary_key=True),
    Column("account_id", ForeignKey("account.id"), primary_key=True, index=True),
    Column("role", String, nullable=False),
    at("created_at"),
)
