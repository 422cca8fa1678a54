"""Tables of stars, watches, and the inbox that the event log fills."""

from __future__ import annotations

from sqlalchemy import BigInteger, Boolean, Column, ForeignKey, Index, String, Table

from relay.db.schema.base import BY_KEY, at, metadata

star = Table(
    "star",
    metadata,
    Column("repo_id", ForeignKey("repo.id"), primary_key=True),
    Column("account_id", ForeignKey("account.id"), primary_key=True, index=True),
    at("created_at"),
    **BY_KEY,
)

watch = Table(
    "watch",
    metadata,
    Column("repo_id", ForeignKey("repo.id"), primary_key=True),
    Column("account_id", ForeignKey("account.id"), primary_key=True, index=True),
    at("created_at"),
    **BY_KEY,
)

# How many there are of both; no row: none.
social = Table(
    "social",
    metadata,
    Column("repo_id", ForeignKey("repo.id"), primary_key=True),
    Column("stars", BigInteger, nullable=False),
    Column("watchers", BigInteger, nullable=False),
    **BY_KEY,
)

# Handles that a post named: whoever is in it was told. `post`: id of a comment or a review, "" for the text
# of an issue or a proposal itself.
mention = Table(
    "mention",
    metadata,
    Column("repo_id", ForeignKey("repo.id"), primary_key=True),
    Column("number", BigInteger, primary_key=True, autoincrement=False),
    Column("post", String, primary_key=True),
    Column("handle", String, primary_key=True),
    **BY_KEY,
)

# One row for each account and subject. Titles are not in it: they are read with what the reader may see.
inbox = Table(
    "inbox",
    metadata,
    Column("account_id", ForeignKey("account.id"), primary_key=True),
    Column("repo_id", ForeignKey("repo.id"), primary_key=True, index=True),
    Column("number", BigInteger, primary_key=True, autoincrement=False),  # 0: the repository itself
    Column("reason", String, nullable=False),
    Column("unread", Boolean, nullable=False),
    Column("done", Boolean, nullable=False),
    Column("event", BigInteger, nullable=False),  # the newest one
    at("updated_at"),
    Index("ix_inbox_open", "account_id", "done", "updated_at", "repo_id", "number"),
    Index("ix_inbox_all", "account_id", "updated_at", "repo_id", "number"),
    **BY_KEY,
)
