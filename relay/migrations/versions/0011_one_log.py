"""One event log: who did it, on which device and turn, who may hear; cursors of those who follow it. Open jobs
are found by kind.

Events until here were hints of what stands elsewhere, and are forgotten: whoever listens resyncs. Ids go on
after the last of them.
"""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0011"
down_revision = "0010"

COUNTED = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
OPEN = sa.text("done_at IS NULL")

def upgrade() -> None:
    connection = op.get_bind()
    last = connection.execute(sa.text("SELECT coalesce(max(id), 0) FROM event")).scalar_one()
    op.create_table(
        "cursor",
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("name", name=op.f("pk_cursor")),
        sqlite_with_rowid=False,
    )
    if last:
        connection.execute(sa.text("INSERT INTO cursor VALUES ('swept', :last)"), {"last": last})
    op.drop_index(op.f("ix_event_repo_id"), table_name="event")
    if connection.dialect.name == "sqlite":
        _anew(connection, last)
    else:
        op.execute("TRUNCATE event")
        op.alter_column("event", "repo_id", nullable=True)
        for column in _new():
            op.add_column("event", column)
    for columns, where in (
        (["repo_id", "id"], None),
        (["kind", "id"], None),
        (["repo_id", "number", "id"], sa.text("number IS NOT NULL")),
        (["account_id", "id"], sa.text("account_id IS NOT NULL")),
    ):
        _index("event", f"ix_event_{'_'.join(columns)}", columns, where)
    _index("event", "ix_event_of_no_repo", ["created_at"], sa.text("repo_id IS NULL"))
    op.drop_index("ix_job_open", table_name="job")
    _index("job", "ix_job_open", ["kind", "run_at"], OPEN)


def _new() -> list[sa.Column[Any]]:
    return [
        sa.Column("account_id", sa.String(), nullable=True),
        sa.Column("number", sa.BigInteger(), nullable=True),
        sa.Column("actor", sa.String(), nullable=False, server_default=""),
        sa.Column("device_key_id", sa.String(), nullable=True),
        sa.Column("turn", sa.String(), nullable=True),
        sa.Column("audience", sa.String(), nullable=False, server_default="reader"),
    ]


def _anew(connection: sa.Connection, last: int) -> None:
    """SQLite alters no column, and counts without using a number again only where the table says so."""
    op.drop_table("event")
    op.create_table(
        "event",
        sa.Column("id", COUNTED, autoincrement=False, nullable=False),
        sa.Column("repo_id", sa.String(), nullable=True),
        sa.Column("kind", sa.String(), nullable=False),
        sa.Column("data", sa.Text(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        *_new(),
        sa.ForeignKeyConstraint(["repo_id"], ["repo.id"], name=op.f("fk_event_repo_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_event")),
        sqlite_autoincrement=True,
    )
    connection.execute(sa.text("INSERT INTO sqlite_sequence VALUES ('event', :last)"), {"last": last})


def _index(table: str, name: str, columns: list[str], where: sa.TextClause | None) -> None:
    op.create_index(op.f(name), table, columns, unique=False, sqlite_where=where, postgresql_where=where)
