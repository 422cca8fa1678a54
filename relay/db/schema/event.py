"""The tables of the event log and of its followers."""

from __future__ import annotations

from sqlalchemy import BigInteger, Column, ForeignKey, Index, String, Table, Text, text

from relay.db.schema.base import BY_KEY, COUNTED, at, metadata

# An id is never used again, also when the last events are swept: followers remember where they stand.
event = Table(
    "event",
    metadata,
    Column("id", COUNTED, primary_key=True, autoincrement=False),  # see `Tx.stamp`
    Column("repo_id", ForeignKey("repo.id")),  # what it happened to; with neither it concerns the node
    Column("account_id", String),  # no key: what happened to a guest is told after the guest is gone
    Column("number", BigInteger),  # of an issue or a proposal of the repository
    Column("kind", String, nullable=False),  # noun.verb, or live
    # Account id; "operator"; "" for the node, or nobody known. Defaults are for older builds.
    Column("actor", String, nullable=False, server_default=""),
    Column("device_key_id", String),
    Column("turn", String),  # what an agent calls its turn
    Column("audience", String, nullable=False, server_default="reader"),  # the least: reader, writer, owner
    Column("data", Text, nullable=False),  # JSON: ids, numbers and names; never titles, bodies or paths
    at("created_at"),
    Index("ix_event_repo_id_id", "repo_id", "id"),
    Index("ix_event_kind_id", "kind", "id"),
    Index(
        "ix_event_repo_id_number_id",
        "repo_id",
        "number",
        "id",
        sqlite_where=text("number IS NOT NULL"),
        postgresql_where=text("number IS NOT NULL"),
    ),
    Index(
        "ix_event_account_id_id",
        "account_id",
        "id",
        sqlite_where=text("account_id IS NOT NULL"),
        postgresql_where=text("account_id IS NOT NULL"),
    ),
    Index(
        "ix_event_of_no_repo",
        "created_at",
        sqlite_where=text("repo_id IS NULL"),
        postgresql_where=text("repo_id IS NULL"),
    ),
    sqlite_autoincrement=True,
)

cursor = Table(
    "cursor",
    metadata,
    Column("name", String, primary_key=True),  # of a follower; `swept`: the last `live` event that is gone
    Column("at", BigInteger, nullable=False),  # the id of an event: all up to here were followed
    **BY_KEY,
)
