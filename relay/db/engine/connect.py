"""Chooses the database of a node by its URL. A driver is imported only where it is used."""

from __future__ import annotations

from relay.base import database_url as urls
from relay.db.engine.database import Database


def make_database(url: str) -> Database:
    """The database of this URL, not opened yet."""
    if urls.is_postgres(url):
        from relay.db.engine.postgres import PostgresDatabase

        return PostgresDatabase(url)
    from relay.db.engine.sqlite import SqliteDatabase

    return SqliteDatabase(urls.sqlite_path(url))
