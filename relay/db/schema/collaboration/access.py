"""Tables of invitations, of requests for access, and of transfers."""

from __future__ import annotations

from sqlalchemy import Column, ForeignKey, Index, String, Table, Text, text

from relay.db.schema.base import at, metadata

_PENDING = text("state = 'pending'")

invite = Table(
    "invite",
    metadata,
    Column("id", String, primary_key=True),
    Column("repo_id", ForeignKey("repo.id"), nullable=False),
    Column("account_id", ForeignKey("account.id"), nullable=False),
    Column("inviter_id", ForeignKey("account.id"), nullable=False),
    Column("role", String, nullable=False),
    Column("state", String, nullable=False),  # pending, accepted, declined, cancelled, expired
    at("created_at"),
    at("valid_until"),
    Index(
        "uq_invite_open",
        "repo_id",
        "account_id",
        unique=True,
        sqlite_where=_PENDING,
        postgresql_where=_PENDING,
    ),
    Index("ix_invite_of_account", "account_id", "id"),
    Index("ix_invite_of_inviter", "inviter_id", "created_at"),
)

access_request = Table(
    "access_request",
    metadata,
    Column("id", String, primary_key=True),
    Column("repo_id", ForeignKey("repo.id"), nullable=False),
    Column("account_id", ForeignKey("account.id"), nullable=False),
    Column("role", String, nullable=False),
    Column("note", Text, nullable=False),
    Column("state", String, nullable=False),  # pending, granted, declined
    at("created_at"),
    Index(
        "uq_access_request_open",
        "repo_id",
        "account_id",
        unique=True,
        sqlite_where=_PENDING,
        postgresql_where=_PENDING,
    ),
    Index("ix_access_request_of_account", "account_id"),
)

transfer = Table(
    "transfer",
    metadata,
    Column("id", String, primary_key=True),
    Column("repo_id", ForeignKey("repo.id"), nullable=False),
    Column("sender_id", ForeignKey("account.id"), nullable=False),
    Column("account_id", ForeignKey("account.id"), nullable=False),  # who is to own it
    Column("state", String, nullable=False),  # as of an invitation
    at("created_at"),
    at("valid_until"),
    Index("uq_transfer_open", "repo_id", unique=True, sqlite_where=_PENDING, postgresql_where=_PENDING),
    Index("ix_transfer_of_account", "account_id", "id"),
    Index("ix_transfer_of_sender", "sender_id", "id"),
)
