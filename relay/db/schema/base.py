"""Columns that many tables have."""

from __future__ import annotations

from typing import Any

from sqlalchemy import BigInteger, Column, Integer, MetaData

metadata = MetaData(
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "fk": "fk_%(table_name)s_%(column_0_N_name)s",
        "pk": "pk_%(table_name)s",
    }
)

# An id the database counts. SQLite counts in INTEGER columns only.
COUNTED = BigInteger().with_variant(Integer, "sqlite")

# Rows lie in the index of their key, not beside it: for tables of many small rows, all looked up by key.
BY_KEY: dict[str, Any] = {"sqlite_with_rowid": False}


def at(name: str, nullable: bool = False) -> Column[int]:
    """A column for a time: milliseconds since 1970, UTC."""
    return Column(name, BigInteger, nullable=nullable)
