"""Migrates PostgreSQL under an advisory lock: if two processes migrate, the second has nothing left to do.

Text is compared by its bytes, as in SQLite, whatever the collation of the database, because cursors of lists
and ranges of paths rely on this order.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

import asyncpg
from sqlalchemy import Connection, pool, text
from sqlalchemy.dialects.postgresql.base import PGTypeCompiler
from sqlalchemy.ext.asyncio import create_async_engine

from relay.base.environment import StartRefused

LOCK = 0x7265_6C61_79_6D67  # "relaymg"
OLDEST = 16  # major version of PostgreSQL that is served
T = TypeVar("T")
Work = Callable[[Connection], None]


def current(url: str) -> str | None:
    return _with(url, _current)


async def _nothing(_: Any) -> None:
    pass


def run(url: str, work: Work, then: Callable[[Any], Awaitable[None]] = _nothing) -> None:
    """Run `work`, then `then`, in one transaction that holds the advisory lock for migrations. `work` gets
    SQLAlchemy's connection, `then` the driver's."""
    _with(url, lambda connection: _run(connection, work, then), keep=True)


def grant(url: str, role: str | None) -> None:
    """Give the role `role` only the rights to read and write. Does nothing for None, nor for the role that
    migrates, which has these rights."""
    if role is not None:
        _with(url, lambda connection: _grant(connection, role))


def _with(url: str, work: Callable[[Any], Awaitable[T]], keep: bool = False) -> T:
    """Run `work` on a new connection and a new event loop, and return its result. `keep`: `work` itself
    closes the connection."""

    async def main() -> T:
        connection = await asyncpg.connect(url)
        try:
            _require_version(connection)
            return await work(connection)
        finally:
            if not keep:
                await connection.close()

    try:
        return asyncio.run(main())
    except (asyncpg.DataError, asyncpg.IntegrityConstraintViolationError):
        raise  # of whoever brought the rows
    except (asyncpg.PostgresError, asyncpg.InterfaceError, OSError) as error:
        raise StartRefused(f"PostgreSQL: {str(error).splitlines()[0]}") from None


def _require_version(connection: Any) -> None:
    """Raise StartRefused for a PostgreSQL server of an old version, on which some statements would fail
    later."""
    version = connection.get_server_version()
    if version.major < OLDEST:
        raise StartRefused(
            f"this is PostgreSQL {version.major}.{version.minor}; a relay needs PostgreSQL {OLDEST} or "
            "newer: upgrade the server, or name another one in DATABASE_URL"
        )


async def _current(connection: Any) -> str | None:
    if await connection.fetchval("SELECT to_regclass('alembic_version') IS NULL"):
        return None
    revision = await connection.fetchval("SELECT version_num FROM alembic_version")
    return None if revision is None else str(revision)


async def _run(given: Any, work: Work, then: Callable[[Any], Awaitable[None]]) -> None:
    async def same() -> Any:
        return given

    engine = create_async_engine("postgresql+asyncpg://", async_creator=same, poolclass=pool.NullPool)
    dialect: Any = engine.dialect
    dialect.type_compiler_instance = _ByBytes(dialect)
    async with engine.begin() as connection:
        await connection.execute(text(f"SELECT pg_advisory_xact_lock({LOCK})"))
        await connection.run_sync(work)
        await then(given)
    await engine.dispose()


async def _grant(connection: Any, role: str) -> None:
    if await connection.fetchval("SELECT current_user::text") == role:
        return
    schema, name = _quote(await connection.fetchval("SELECT current_schema()::text")), _quote(role)
    async with connection.transaction():
        await connection.execute(
            f"GRANT USAGE ON SCHEMA {schema} TO {name};"
            f"GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA {schema} TO {name};"
            f"GRANT USAGE ON ALL SEQUENCES IN SCHEMA {schema} TO {name};"
            f"REVOKE INSERT, UPDATE, DELETE ON alembic_version FROM {name}"
        )


def _quote(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


class _ByBytes(PGTypeCompiler):
    """Compiles types of text columns with the collation C, which compares by bytes."""

    def visit_VARCHAR(self, type_: Any, **options: Any) -> str:  # noqa: N802  # SQLAlchemy's name
        return self._plain(super().visit_VARCHAR(type_, **options), type_)

    def visit_TEXT(self, type_: Any, **options: Any) -> str:  # noqa: N802
        return self._plain(super().visit_TEXT(type_, **options), type_)

    @staticmethod
    def _plain(spelled: str, type_: Any) -> str:
        return spelled if type_.collation else f'{spelled} COLLATE "C"'
