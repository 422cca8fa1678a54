"""The table of stored answers, which are sent again when a request is repeated."""

from __future__ import annotations

from sqlalchemy import BigInteger, Column, Integer, LargeBinary, String, Table

from relay.db.schema.base import metadata

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
