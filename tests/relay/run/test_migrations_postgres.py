"""The migrations on PostgreSQL: the same schema, text by its bytes, a runtime role that cannot change it."""

from __future__ import annotations

import asyncio
import getpass
import os
import shutil
import subprocess
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import asyncpg
import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext

from relay import migrations
from relay.base.environment import StartRefused
from relay.db.schema import metadata
from relay.migrations import postgres
from tests.databases import admin, postgres_url
from tests.relay.run.test_start import GOOD, relay


def rows(url, query):
    async def work():
        connection = await asyncpg.connect(url)
        try:
            return [tuple(row) for row in await connection.fetch(query)]
        finally:
            await connection.close()

    return asyncio.run(work())


def test_migrations_make_the_schema_and_again_change_nothing():
    url = postgres_url("template1")
    assert migrations.read_revision(url) is None
    with pytest.raises(StartRefused, match="not migrated"):
        migrations.check(url)
    assert migrations.upgrade(url) == migrations.HEAD == migrations.read_revision(url)
    assert migrations.upgrade(url) == migrations.HEAD
    migrations.check(url)
    found = []

    def compare(connection):
        context = MigrationContext.configure(connection, opts={"compare_type": True})
        found.extend(compare_metadata(context, metadata))

    postgres.run(url, compare)
    assert found == []


def test_text_is_compared_by_its_bytes_in_every_column():
    others = rows(
        postgres_url(),
        "SELECT table_name, column_name FROM information_schema.columns WHERE table_schema = 'public' "
        "AND data_type IN ('text', 'character varying') AND collation_name IS DISTINCT FROM 'C' "
        "AND table_name <> 'alembic_version'",
    )
    assert others == []


def test_of_two_that_migrate_at_once_both_find_it_done():
    url = postgres_url("template1")
    with ThreadPoolExecutor(3) as pool:
        assert set(pool.map(migrations.upgrade, [url] * 3)) == {migrations.HEAD}
    assert rows(url, "SELECT count(*) FROM alembic_version") == [(1,)]


def test_the_role_that_serves_reads_and_writes_and_changes_no_schema():
    url = postgres_url("template1")
    admin("DROP ROLE IF EXISTS serving", "CREATE ROLE serving LOGIN")
    served = url.replace("postgres:@", "serving:@")
    migrations.upgrade(url, served)
    migrations.check(served)
    assert rows(served, "DELETE FROM event RETURNING id") == []
    rows(served, "INSERT INTO audit (at, actor, action, subject, data) VALUES (0, '', '', '', '')")
    for refused in ("DROP TABLE audit", "CREATE TABLE more (n int)", "DELETE FROM alembic_version"):
        with pytest.raises(asyncpg.InsufficientPrivilegeError):
            rows(served, refused)


def test_a_server_that_is_not_there_is_refused_in_one_line():
    with pytest.raises(StartRefused, match=r"^PostgreSQL: [^\n]+$"):
        migrations.upgrade("postgresql:///relay?host=/nowhere")


@pytest.fixture(scope="module")
def old_postgres():
    """A server that is too old, where one is installed: Debian keeps each major version in a folder. It runs
    as another user, who cannot reach what pytest makes."""
    programs = Path("/usr/lib/postgresql/15/bin")
    if not programs.is_dir():
        pytest.skip("no PostgreSQL 15 here; with apt: postgresql-15")
    folder = Path(tempfile.mkdtemp(prefix="pg15"))
    user = "postgres" if os.getuid() == 0 else getpass.getuser()
    shutil.chown(folder, user)
    folder.chmod(0o755)

    def run(*command):
        subprocess.run(command, check=True, user=user, cwd=folder, stdout=subprocess.DEVNULL)

    run(programs / "initdb", "-D", folder / "data", "-U", "relay", "--auth=trust", "--no-sync")
    options = f"-c listen_addresses= -c unix_socket_directories={folder} -c fsync=off"
    run(programs / "pg_ctl", "-w", "-D", folder / "data", "-l", folder / "log", "-o", options, "start")
    yield f"postgresql://relay@/postgres?host={folder}"
    run(programs / "pg_ctl", "-w", "-D", folder / "data", "-m", "immediate", "stop")
    shutil.rmtree(folder, ignore_errors=True)


def test_an_old_server_is_refused_by_name(old_postgres, tmp_path):
    good = {**GOOD, "DATABASE_URL": old_postgres}
    for command in (("migrate",), ("serve", "--port", "0"), ("serve", "--dev", "--port", "0")):
        refused = relay(
            *command,
            "--data",
            str(tmp_path / command[-1]),
            **(good if "--dev" not in command else {"DATABASE_URL": old_postgres}),
        )
        assert refused.returncode == 1, (command, refused)
        assert "PostgreSQL 15." in refused.stderr and "PostgreSQL 16 or newer" in refused.stderr, (
            refused.stderr
        )
        assert len(refused.stderr.splitlines()) == 1
    assert rows(old_postgres, "SELECT count(*) FROM pg_tables WHERE schemaname = 'public'") == [(0,)]
