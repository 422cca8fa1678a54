"""`INSERT … ON CONFLICT`, which SQLite and PostgreSQL write in the same way and SQLAlchemy Core does not
offer for both."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Insert
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.compiler import SQLCompiler


class InsertNew(Insert):
    """Insert the rows whose keys do not exist yet; skip the rest."""

    inherit_cache = False


class InsertOrReplace(Insert):
    """Insert rows, replacing rows with the same keys. If the rows come from a SELECT, the SELECT needs a
    WHERE, because SQLite's parser requires one."""

    inherit_cache = False


@compiles(InsertNew)
def _insert_new(statement: InsertNew, compiler: SQLCompiler, **options: Any) -> str:
    return f"{compiler.visit_insert(statement, **options)} ON CONFLICT DO NOTHING"  # type: ignore[no-untyped-call]


@compiles(InsertOrReplace)
def _insert_or_replace(statement: InsertOrReplace, compiler: SQLCompiler, **options: Any) -> str:
    table: Any = statement.table
    key = ", ".join(column.name for column in table.primary_key)
    rest = ", ".join(
        f"{column.name} = excluded.{column.name}" for column in table.columns if not column.primary_key
    )
    insertion = compiler.visit_insert(statement, **options)  # type: ignore[no-untyped-call]
    return f"{insertion} ON CONFLICT ({key}) DO UPDATE SET {rest}"
