"""The base of all migrations: new databases, and those that the migrations before it brought to its revision.

`revision_0039` holds such a database as each engine dumped it. Every test runs on SQLite and PostgreSQL.
"""

from __future__ import annotations

import asyncio
import contextlib
import importlib
import re
import sqlite3
from pathlib import Path

import asyncpg
import pytest
from sqlalchemy import Boolean, Integer, LargeBinary, Text, select

from relay import migrations
from relay.base.environment import StartRefused
from relay.db.engine.connect import make_database
from relay.db.schema import tables
from tests.databases import empty_url, rows
from tests.relay.run.test_start import GOOD, relay

DUMPS = Path(__file__).parent / "revision_0039"
BASE = importlib.import_module("relay.migrations.versions.0039_base").schema
engines = pytest.mark.parametrize("postgres", [False, True], ids=["sqlite", "postgres"])


def restored(folder, postgres, name="relay"):
    """The URL of a database as the migrations before the base left it, with two rows in each table."""
    (folder / name).mkdir()
    url = empty_url(folder / name, postgres)
    run(url, (DUMPS / ("postgres.sql" if postgres else "sqlite.sql")).read_text())
    for table in BASE.sorted_tables:
        columns = ", ".join(f'"{column.name}"' for column in table.columns)
        marks = ", ".join("?" * len(table.columns))
        for number in (1, 2):
            values = [value_of(column, number) for column in table.columns]
            rows(url, f'INSERT INTO "{table.name}" ({columns}) VALUES ({marks})', *values)
    return url


def value_of(column, number):
    """Row 1 has a value in each column, row 2 where one must be; keys of other tables name their row."""
    if column.nullable and number == 2:
        return None
    if column.foreign_keys:
        return value_of(next(iter(column.foreign_keys)).column, number)
    if isinstance(column.type, Boolean):
        return number == 1
    if isinstance(column.type, Integer):
        return number
    if isinstance(column.type, LargeBinary):
        return bytes([number]) * 32
    return "{}" if isinstance(column.type, Text) else f"{column.name}-{number}"


def run(url, statements):
    async def on_postgres():
        connection = await asyncpg.connect(url)
        try:
            await connection.execute(statements)
        finally:
            await connection.close()

    if not url.startswith("sqlite"):
        asyncio.run(on_postgres())
        return
    with contextlib.closing(sqlite3.connect(url.removeprefix("sqlite:///"))) as db:
        db.executescript(statements)


def rows_of(url):
    """Every row of every table that the base makes, by its columns of then."""
    by_table = {}
    for table in BASE.sorted_tables:
        columns = ", ".join(f'"{column.name}"' for column in table.columns)
        by_table[table.name] = sorted(map(repr, rows(url, f'SELECT {columns} FROM "{table.name}"')))
    return by_table


def catalogue(url):
    """All that the engine knows of a schema: columns in order, constraints, indexes, triggers, counters."""
    return _postgres_catalogue(url) if url.startswith("postgres") else _sqlite_catalogue(url)


def _postgres_catalogue(url):
    return {
        "columns": rows(
            url,
            "SELECT table_name::text, column_name::text, ordinal_position::int, data_type::text, "
            "column_default::text, is_nullable::text, collation_name::text FROM information_schema.columns "
            "WHERE table_schema = 'public' AND table_name <> 'alembic_version' ORDER BY 1, 3",
        ),
        "constraints": rows(
            url,
            "SELECT conrelid::regclass::text, conname::text, pg_get_constraintdef(oid) FROM pg_constraint "
            "WHERE connamespace = 'public'::regnamespace ORDER BY 1, 2",
        ),
        "indexes": rows(url, "SELECT indexdef FROM pg_indexes WHERE schemaname = 'public' ORDER BY 1"),
        "triggers": rows(url, "SELECT tgname::text FROM pg_trigger WHERE NOT tgisinternal ORDER BY 1"),
        "counters": rows(
            url,
            "SELECT seqrelid::regclass::text, seqtypid::regtype::text, pg_get_serial_sequence("
            "d.refobjid::regclass::text, a.attname) FROM pg_sequence JOIN pg_depend d ON d.objid = seqrelid "
            "AND d.deptype = 'a' JOIN pg_attribute a ON a.attrelid = d.refobjid AND a.attnum = d.refobjsubid "
            "ORDER BY 1",
        ),
    }


def _sqlite_catalogue(url):
    # The words of each statement in any order: a column that was added stands behind the constraints.
    words = {
        f"{kind} {name}": sorted(re.findall(r"\w+|[^\w\s\",]", sql or ""))
        for kind, name, sql in rows(url, "SELECT type, name, sql FROM sqlite_master")
    }
    columns = {
        name: rows(url, f"SELECT * FROM pragma_table_xinfo('{name}')")
        for (name,) in rows(url, "SELECT name FROM sqlite_master WHERE type = 'table'")
    }
    return {"words": words, "columns": columns}


@engines
def test_a_new_database_has_the_schema_that_one_of_before_has(tmp_path, postgres, monkeypatch):
    old = restored(tmp_path, postgres, "old")
    (tmp_path / "new").mkdir()
    new = empty_url(tmp_path / "new", postgres)
    with monkeypatch.context() as patch:
        patch.setattr(migrations, "HEAD", migrations.BASE)
        assert migrations.upgrade(new) == migrations.BASE == "0039"
    assert catalogue(new) == catalogue(old)
    migrations.upgrade(new)
    migrations.upgrade(old)
    assert catalogue(new) == catalogue(old)


@engines
def test_a_database_of_before_is_opened_as_it_is(tmp_path, postgres, monkeypatch):
    url = restored(tmp_path, postgres)
    before, file = rows_of(url), tmp_path / "relay" / "relay.db"
    assert all(len(two) == 2 for two in before.values())
    whole = None if postgres else file.read_bytes()
    with monkeypatch.context() as patch:
        patch.setattr(migrations, "HEAD", migrations.BASE)
        migrations.check(url)
        assert migrations.upgrade(url) == migrations.read_revision(url) == migrations.BASE
    assert rows_of(url) == before
    assert postgres or file.read_bytes() == whole
    migrations.upgrade(url)
    migrations.check(url)
    assert handles(url) == ["handle-1", None]


def handles(url):
    """The handles of all accounts, read as a relay reads."""

    async def work():
        db = make_database(url)
        await db.open()
        try:
            async with db.read() as tx:
                account = tables["account"]
                return [row[0] for row in await tx.all(select(account.c.handle).order_by(account.c.id))]
        finally:
            await db.close()

    return asyncio.run(work())


@engines
def test_a_database_from_before_the_base_is_refused_and_left_as_it_is(tmp_path, postgres):
    url = restored(tmp_path, postgres)
    run(url, "UPDATE alembic_version SET version_num = '0037'")
    before = catalogue(url), rows_of(url)
    for refuses in (migrations.check, migrations.upgrade):
        with pytest.raises(
            StartRefused, match="at revision 0037, this build migrates from 0039 on; run relay"
        ):
            refuses(url)
    for command in (("migrate",), ("serve", "--port", "0"), ("serve", "--dev", "--port", "0")):
        variables = {"DATABASE_URL": url} if "--dev" in command else {**GOOD, "DATABASE_URL": url}
        refused = relay(*command, "--data", str(tmp_path / "data"), **variables)
        assert (refused.returncode, len(refused.stderr.splitlines())) == (1, 1), refused
        assert "at revision 0037" in refused.stderr
    assert (catalogue(url), rows_of(url)) == before
