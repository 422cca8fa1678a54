"""Tables of quotas and of usage. Usage is counted in the transactions that change it. The tables have no
foreign keys: the previous release of the relay does not know these tables and may still run on this
schema."""

from __future__ import annotations

from sqlalchemy import BigInteger, Boolean, Column, Integer, String, Table

from relay.db.schema.base import BY_KEY, at, metadata

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

# What an account created since the first one in the window, of a kind of `relay.capacity.creation`.
created = Table(
    "created",
    metadata,
    Column("account_id", String, primary_key=True),
    Column("kind", String, primary_key=True),
    Column("made", BigInteger, nullable=False),
    Column("expires_at", BigInteger, nullable=False, index=True),
    **BY_KEY,
)

# One row that readiness writes, to know whether the database takes writes.
heartbeat = Table(
    "heartbeat",
    metadata,
    Column("id", Integer, primary_key=True, autoincrement=False),
    at("at"),
)
