"""Tables of webhooks, of the messages about events, and of the deliveries of messages to webhooks."""

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
    Text,
    text,
)

from relay.db.schema.base import BY_KEY, at, metadata

webhook = Table(
    "webhook",
    metadata,
    Column("id", String, primary_key=True),  # in the order of creation
    Column("repo_id", ForeignKey("repo.id"), nullable=False),
    Column("url", Text, nullable=False),
    Column("host", String, nullable=False),  # host:port, which requests to it take turns by
    Column("secret", LargeBinary, nullable=False),  # what signs
    Column("events", String, nullable=False),  # kinds, with spaces between and around them
    Column("active", Boolean, nullable=False),
    Column("disabled", String),  # why it is not active: owner, failing, gone, transferred
    Column("creator_id", ForeignKey("account.id"), nullable=False),
    at("created_at"),
    at("updated_at"),
    at("failing_since", True),  # of the first failure since the last success
    Index("ix_webhook_listed", "repo_id", "id"),
    Index("ix_webhook_made", "creator_id", "created_at"),
)

# What an event says, once for all webhooks of the repository.
webhook_message = Table(
    "webhook_message",
    metadata,
    Column("event_id", BigInteger, primary_key=True, autoincrement=False),
    Column("repo_id", ForeignKey("repo.id"), nullable=False, index=True),
    Column("type", String, nullable=False),
    Column("body", Text, nullable=False),  # JSON, the bytes that are signed
    at("created_at"),
    Index("ix_webhook_message_kept", "created_at"),
    **BY_KEY,
)

webhook_delivery = Table(
    "webhook_delivery",
    metadata,
    Column("id", String, primary_key=True),  # in the order of creation
    Column("webhook_id", ForeignKey("webhook.id"), nullable=False),
    Column("event_id", ForeignKey("webhook_message.event_id"), nullable=False, index=True),
    Column("redelivery", Boolean, nullable=False),  # somebody asked for it
    Column("state", String, nullable=False),  # waiting, delivered, failed
    Column("attempts", Integer, nullable=False),
    Column("status", Integer),  # of the last answer
    Column("reason", Text),  # why there was none, or none that is good
    Column("duration", BigInteger),  # milliseconds of the last attempt
    Column("sent_headers", Text),  # JSON, as the two that follow: of the last attempt
    Column("answer_headers", Text),
    Column("answer_body", LargeBinary),  # how it began
    at("created_at"),
    at("attempted_at", True),
    at("next_at", True),
    Index("ix_webhook_delivery_listed", "webhook_id", "id"),
    Index("ix_webhook_delivery_of_state", "webhook_id", "state", "id"),
    Index(
        "ix_webhook_delivery_over",
        "created_at",
        sqlite_where=text("state != 'waiting'"),
        postgresql_where=text("state != 'waiting'"),
    ),
)
