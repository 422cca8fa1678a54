"""Alembic's environment. It runs all revisions in one transaction, so that a failed migration changes
nothing.

`relay.migrations` passes a URL (SQLite) or a connection whose transaction has begun (PostgreSQL).
"""

from __future__ import annotations

from alembic import context
from sqlalchemy import Connection, create_engine, event, pool

from relay.db.schema import metadata


def _run(connection: Connection) -> None:
    context.configure(
        connection=connection,
        target_metadata=metadata,
        render_as_batch=connection.dialect.name == "sqlite",
        transactional_ddl=True,
    )
    with context.begin_transaction():
        context.run_migrations()


given = context.config.attributes
if "connection" in given:
    _run(given["connection"])
else:
    engine = create_engine(given["url"], poolclass=pool.NullPool)
    event.listen(engine, "connect", lambda dbapi, _: setattr(dbapi, "isolation_level", None))
    event.listen(engine, "begin", lambda connection: connection.exec_driver_sql("BEGIN IMMEDIATE"))
    with engine.connect() as connection:
        _run(connection)
