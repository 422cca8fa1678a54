"""Tables of documents and of the updates that changed them."""

from __future__ import annotations

from sqlalchemy import Column, ForeignKey, Integer, LargeBinary, String, Table

from relay.db.schema.base import BY_KEY, at, metadata

document = Table(
    "document",
    metadata,
    Column("id", String, primary_key=True),
    Column("account_id", ForeignKey("account.id"), nullable=False, index=True),
    Column("title", String, nullable=False),
    Column("content", LargeBinary, nullable=False),  # JSON: what the operations make
    Column("head", Integer, nullable=False),  # number of the last update
    Column("size", Integer, nullable=False),  # bytes of content and operations
    at("created_at"),
    at("updated_at"),
    at("archived_at", True),
)

document_update = Table(
    "document_update",
    metadata,
    Column("document_id", ForeignKey("document.id"), primary_key=True),
    Column("number", Integer, primary_key=True),
    Column("first", Integer, nullable=False),  # less than `number`: a snapshot of the updates from there
    Column("base", Integer, nullable=False),  # number of the update on which the edit was based
    Column("operations", LargeBinary, nullable=False),  # a Yjs update
    at("created_at"),
    **BY_KEY,
)
