"""`INSERT … ON CONFLICT DO NOTHING`, spelled the same by SQLite and PostgreSQL but not by SQLAlchemy Core."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Insert
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.compiler import SQLCompiler


class InsertNew(Insert):
    """Insert the rows whose keys are not there yet; the others stay as they are."""

    inherit_cache = False


@compiles(InsertNew)
def _insert_new(statement: InsertNew, compiler: SQLCompiler, **options: Any) -> str:
    return f"{compiler.visit_insert(statement, **options)} ON CONFLICT DO NOTHING"  # type: ignore[no-untyped-call]
