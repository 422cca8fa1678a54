"""Fills an empty database with the rows of a backup, which may come from another kind of database.

Schema and rows appear in one step: as a new file that is renamed when complete, or in one transaction. A
backup with an older schema is restored with that schema and migrated afterwards.
"""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import asyncpg

from localstore.core.errors import Invalid
from relay import migrations
from relay.backup.tables import Rows
from relay.base import database_url as urls
from relay.base.folders import sync_folder
from relay.db.engine.postgres import STAMP_BITS
from relay.migrations import postgres

EVENTS = "event"
# Followers keep their positions relative to the events.
_CURSORS = """DO $$ BEGIN IF to_regclass('cursor') IS NOT NULL AND to_regclass('restored') IS NOT NULL THEN
UPDATE cursor SET at = coalesce((SELECT min(id) FROM event), 0) - 1
  + (SELECT count(*) FROM restored WHERE restored.id <= cursor.at); END IF; END $$"""


def fill(url: str, revision: str, tables: Iterable[Rows], served: str | None = None) -> None:
    """Create the schema of `revision` in the empty database at `url`, insert the rows of `tables`, and
    migrate the database to the newest schema. `served`: the URL with which relays will open the database.
    Raises Invalid for rows that do not fit the schema."""
    try:
        if urls.is_postgres(url):
            postgres.run(
                url,
                lambda connection: migrations.run_alembic(revision, connection=connection),
                lambda connection: _postgres(connection, tables),
            )
        else:
            _sqlite(urls.sqlite_path(url), revision, tables)
    except (sqlite3.Error, asyncpg.DataError, asyncpg.IntegrityConstraintViolationError) as error:
        raise Invalid(f"the rows of the backup do not fit: {error}") from None
    migrations.upgrade(url, served)


def _sqlite(path: Path, revision: str, tables: Iterable[Rows]) -> None:
    making = path.with_name(path.name + ".restoring")
    making.unlink(missing_ok=True)
    making.touch(mode=0o600)
    migrations.run_alembic(revision, url=f"sqlite:///{making}")
    with contextlib.closing(sqlite3.connect(making, isolation_level=None)) as db:
        db.execute("PRAGMA journal_mode=DELETE")
        db.execute("PRAGMA foreign_keys=ON")
        db.execute("BEGIN")
        db.execute("PRAGMA defer_foreign_keys=ON")  # rows may refer to later ones of their own table
        for table in tables:
            columns = ",".join(map(_quote, table.columns))
            places = ",".join("?" * len(table.columns))
            db.executemany(
                f"INSERT INTO {_quote(table.name)} ({columns}) VALUES ({places})",  # noqa: S608
                table.rows,
            )
        db.execute("COMMIT")
    making.replace(path)
    sync_folder(path.parent)


async def _postgres(connection: Any, tables: Iterable[Rows]) -> None:
    """Copy the rows of the tables into PostgreSQL. Rows may refer to later rows of their table, because COPY
    checks foreign keys only at the end of a table."""
    for table in tables:
        if table.name == EVENTS:
            await _renumber_events(connection, table)
        else:
            await connection.copy_records_to_table(table.name, columns=table.columns, records=table.rows)
    await connection.execute(_CURSORS)
    await _set_counters(connection)


async def _renumber_events(connection: Any, table: Rows) -> None:
    """Insert events with new ids. The new ids keep the order of the events and are lower than every id that
    this server will assign. The old ids were assigned by SQLite or another server, so this server could
    assign the same ones again."""
    await connection.execute(f"CREATE TEMPORARY TABLE restored (LIKE {EVENTS}) ON COMMIT DROP")
    await connection.copy_records_to_table("restored", columns=table.columns, records=table.rows)
    others = ",".join(_quote(column) for column in table.columns if column != "id")
    await connection.execute(
        f"INSERT INTO {EVENTS} (id, {others}) SELECT "  # noqa: S608
        f"(pg_snapshot_xmin(pg_current_snapshot())::text::bigint << {STAMP_BITS})"
        f" - 1 - count(*) OVER () + row_number() OVER (ORDER BY id), {others} FROM restored"
    )


async def _set_counters(connection: Any) -> None:
    """Set the counters of generated keys, so that the next key follows the highest existing one."""
    generated = await connection.fetch(
        "SELECT table_name::text, column_name::text, sequence FROM information_schema.columns,"
        " pg_get_serial_sequence(quote_ident(table_name), column_name) AS sequence"
        " WHERE table_schema = current_schema() AND sequence IS NOT NULL"
    )
    for table, column, sequence in generated:
        await connection.execute(
            f"SELECT setval($1::text::regclass,"  # noqa: S608
            f" coalesce((SELECT max({_quote(column)}) FROM {_quote(table)}), 0) + 1, false)",
            sequence,
        )


def _quote(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
