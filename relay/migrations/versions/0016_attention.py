"""People star and watch repositories, and have an inbox; lists of whom an issue concerns walk one index."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0016"
down_revision = "0015"


def upgrade() -> None:
    for name in ("star", "watch"):
        _table(name, ["repo_id", "account_id"], _repo(), _text("account_id"), _number("created_at"), account=True)
        _index(name, "account_id", "account_id")
    _table("social", ["repo_id"], _repo(), _number("stars"), _number("watchers"))
    _table(
        "inbox",
        ["account_id", "repo_id", "number"],
        _text("account_id"),
        _repo(),
        _number("number"),
        _text("reason"),
        sa.Column("unread", sa.Boolean(), nullable=False),
        sa.Column("done", sa.Boolean(), nullable=False),
        _number("event"),
        _number("updated_at"),
        account=True,
    )
    _index("inbox", "repo_id", "repo_id")
    _index("inbox", "open", "account_id", "done", "updated_at", "repo_id", "number")
    _index("inbox", "all", "account_id", "updated_at", "repo_id", "number")
    op.drop_index(op.f("ix_part_listed"), table_name="part")
    _index("part", "listed", "account_id", "repo_id", "kind", "state", "number", "assigned", "posted")


def _repo() -> sa.Column[Any]:
    return _text("repo_id")


def _text(name: str) -> sa.Column[Any]:
    return sa.Column(name, sa.String(), nullable=False)


def _number(name: str) -> sa.Column[Any]:
    return sa.Column(name, sa.BigInteger(), nullable=False, autoincrement=False)


def _table(name: str, key: list[str], *parts: Any, account: bool = False) -> None:
    references = [("repo_id", "repo.id"), *([("account_id", "account.id")] if account else [])]
    op.create_table(
        name,
        *parts,
        *(
            sa.ForeignKeyConstraint([column], [target], name=op.f(f"fk_{name}_{column}"))
            for column, target in references
        ),
        sa.PrimaryKeyConstraint(*key, name=op.f(f"pk_{name}")),
        sqlite_with_rowid=False,
    )


def _index(table: str, name: str, *columns: str) -> None:
    op.create_index(op.f(f"ix_{table}_{name}"), table, list(columns), unique=False)
