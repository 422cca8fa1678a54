"""Schema migrations, which only go forward. `relay migrate` runs them with the URL of the migration role.

Only this package imports Alembic, and only if there is something to migrate, so that other starts stay fast.
"""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

from relay.base import database_url as urls
from relay.base.environment import StartRefused

VERSIONS = Path(__file__).parent / "versions"
_REVISIONS = sorted(path.name[:4] for path in VERSIONS.glob("[0-9]*.py"))
BASE = _REVISIONS[0]  # makes the whole schema of its day; no older database is migrated
HEAD = _REVISIONS[-1]  # the revision this build runs on


def read_revision(url: str) -> str | None:
    """The schema revision of a database; None if the database does not exist or was never migrated. Waits for
    the database, so do not call it on the event loop."""
    if urls.is_postgres(url):
        from relay.migrations import postgres

        return postgres.current(url)
    path = urls.sqlite_path(url)
    if not path.exists():
        return None
    connection = sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)
    try:
        row = connection.execute("SELECT version_num FROM alembic_version").fetchone()
    except sqlite3.OperationalError:
        return None
    except sqlite3.DatabaseError:
        raise StartRefused(f"{path} is not an SQLite database") from None
    finally:
        connection.close()
    return str(row[0]) if row else None


def check(url: str) -> None:
    """Raise StartRefused unless the database has the schema of this build."""
    revision = read_revision(url)
    if revision is None:
        raise StartRefused("the database is not migrated; run: relay migrate")
    _require_base(revision)
    if revision < HEAD:
        raise StartRefused(
            f"the database is at revision {revision}, this build needs {HEAD}; run: relay migrate"
        )


def upgrade(url: str, served: str | None = None) -> str:
    """Migrate a database to the revision HEAD, the newest of this build, and return its revision. A database
    at HEAD or a newer revision is left unchanged. One that is older than BASE, the oldest revision that can
    be migrated, is refused. `served`: the URL that relays will use; if it has another role, that role gets
    the rights to read and write."""
    revision = read_revision(url)
    if revision is not None:
        _require_base(revision)
    if revision is None or revision < HEAD:
        _upgrade(url)
        revision = HEAD
    if urls.is_postgres(url) and served is not None:
        from relay.migrations import postgres

        postgres.grant(url, urls.role_of(served))
    return revision


def _require_base(revision: str) -> None:
    if revision < BASE:
        raise StartRefused(
            f"the database is at revision {revision}, this build migrates from {BASE} on; run relay migrate "
            "once with the version before this one, which brings it there"
        )


def _upgrade(url: str) -> None:
    if urls.is_postgres(url):
        from relay.migrations import postgres

        postgres.run(url, lambda connection: run_alembic(HEAD, connection=connection))
        return
    path = urls.sqlite_path(url)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch(mode=0o600)
    except OSError as error:
        raise StartRefused(f"the database {path} cannot be written: {error.strerror}") from None
    run_alembic(HEAD, url=f"sqlite:///{path}")


def run_alembic(revision: str, **attributes: Any) -> None:
    """Migrate a schema up to `revision`. `attributes`: `url` or `connection`, by which `relay.migrations.env`
    reaches the database."""
    from alembic import command
    from alembic.config import Config as AlembicConfig

    config = AlembicConfig()
    config.set_main_option("script_location", str(Path(__file__).parent))
    config.attributes.update(attributes)
    command.upgrade(config, revision)
