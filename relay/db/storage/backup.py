"""SQL statements of a backup: they read every table as a whole, and list the packs."""

from __future__ import annotations

from sqlalchemy import Boolean, Table, select

from relay.db.schema import metadata
from relay.db.schema.storage import pack

TABLES = tuple((table, select(table)) for table in metadata.sorted_tables)
PACKS = select(pack.c.name, pack.c.size).order_by(pack.c.id)


def find_booleans(table: Table) -> list[int]:
    """The indexes of the table's boolean columns, whose values SQLite stores as numbers."""
    return [n for n, column in enumerate(table.columns) if isinstance(column.type, Boolean)]
