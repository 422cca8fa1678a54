"""The migrations make exactly the schema, once, forward only."""

from __future__ import annotations

import sqlite3

import pytest
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import create_engine

from relay import migrations
from relay.base.environment import StartRefused
from relay.db.schema import metadata


def test_migrations_make_the_schema(tmp_path):
    url = f"sqlite:///{tmp_path / 'relay.db'}"
    assert migrations.read_revision(url) is None
    assert migrations.upgrade(url) == migrations.HEAD
    with create_engine(url).connect() as connection:
        context = MigrationContext.configure(connection, opts={"compare_type": True})
        assert compare_metadata(context, metadata) == []


def test_a_migrated_table_is_spelled_like_the_schema(tmp_path):
    """Keys, uniqueness and indexes too, which the comparison above does not all look at."""
    migrated, made = tmp_path / "migrated.db", tmp_path / "made.db"
    migrations.upgrade(f"sqlite:///{migrated}")
    metadata.create_all(create_engine(f"sqlite:///{made}"))
    assert described(migrated) == described(made)


def described(path):
    with sqlite3.connect(path) as db:
        tables = [
            name
            for (name,) in db.execute("SELECT name FROM sqlite_master WHERE type='table' ORDER BY name")
            if name not in ("alembic_version", "sqlite_sequence")
        ]
        return {
            table: (
                sorted(db.execute(f"SELECT name, type, \"notnull\", pk FROM pragma_table_info('{table}')")),
                sorted(
                    (
                        _named(row[0]),
                        row[1],
                        tuple(db.execute(f"SELECT name FROM pragma_index_info('{row[0]}')")),
                    )
                    for row in db.execute(f"SELECT name, \"unique\" FROM pragma_index_list('{table}')")
                ),
                sorted(db.execute(f'SELECT "table", "from", "to" FROM pragma_foreign_key_list(\'{table}\')')),
                db.execute("SELECT wr FROM pragma_table_list WHERE name=?", (table,)).fetchone(),
            )
            for table in tables
        }


def _named(index):
    """SQLite numbers the indexes it makes for constraints in the order of the constraints."""
    return "automatic" if index.startswith("sqlite_autoindex") else index


def test_upgrading_again_changes_nothing(tmp_path):
    url = f"sqlite:///{tmp_path / 'relay.db'}"
    migrations.upgrade(url)
    before = (tmp_path / "relay.db").read_bytes()
    assert migrations.upgrade(url) == migrations.HEAD
    assert (tmp_path / "relay.db").read_bytes() == before


def test_a_newer_schema_serves_older_binaries(tmp_path):
    """Rollback means the previous binaries on the current schema."""
    url = f"sqlite:///{tmp_path / 'relay.db'}"
    migrations.upgrade(url)
    with sqlite3.connect(tmp_path / "relay.db") as db:
        db.execute("UPDATE alembic_version SET version_num='9999'")
    migrations.check(url)
    assert migrations.upgrade(url) == "9999"


def test_head_is_the_last_script(tmp_path):
    config = Config()
    config.set_main_option("script_location", str(migrations.__path__[0]))
    assert ScriptDirectory.from_config(config).get_heads() == [migrations.HEAD]


def test_what_is_no_database_is_refused_in_one_sentence(tmp_path):
    (tmp_path / "relay.db").write_bytes(b"not a database at all" * 100)
    with pytest.raises(StartRefused, match="is not an SQLite database"):
        migrations.upgrade(f"sqlite:///{tmp_path / 'relay.db'}")
