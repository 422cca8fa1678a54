"""Repositories have issues, with comments, reactions, labels and people on them."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0014"
down_revision = "0013"


def upgrade() -> None:
    _table("numbering", ["repo_id"], _repo(), _number("last"), by_key=True)
    _table(
        "subject",
        ["repo_id", "number"],
        _repo(),
        _number("number"),
        _text("kind"),
        _text("state"),
        sa.Column("state_reason", sa.String(), nullable=True),
        sa.Column("title", sa.Text(), nullable=False),
        sa.Column("folded_title", sa.Text(), nullable=False),
        sa.Column("body", sa.Text(), nullable=False),
        _text("author_id"),
        _number("comments"),
        _number("created_at"),
        _number("updated_at"),
        sa.Column("closed_at", sa.BigInteger(), nullable=True),
        _account("subject", "author_id"),
    )
    _index("subject", "of_state", "repo_id", "kind", "state", "number")
    _index("subject", "of_author", "repo_id", "author_id", "kind", "state", "number")
    _index("subject", "posted", "author_id", "created_at")
    _table(
        "subject_label",
        ["repo_id", "number", "folded"],
        _repo(),
        _number("number"),
        _text("folded"),
        _text("kind"),
        _text("state"),
        by_key=True,
    )
    _index("subject_label", "listed", "repo_id", "folded", "kind", "state", "number")
    _table(
        "part",
        ["repo_id", "number", "account_id"],
        _repo(),
        _number("number"),
        _text("account_id"),
        _text("kind"),
        _text("state"),
        sa.Column("posted", sa.Boolean(), nullable=False),
        sa.Column("assigned", sa.Boolean(), nullable=False),
        _account("part", "account_id"),
        by_key=True,
    )
    _index("part", "listed", "account_id", "repo_id", "kind", "state", "number")
    _table(
        "comment",
        ["id"],
        _text("id"),
        _repo(),
        _number("number"),
        _text("author_id"),
        sa.Column("body", sa.Text(), nullable=False),
        _number("created_at"),
        _number("updated_at"),
        sa.Column("deleted_at", sa.BigInteger(), nullable=True),
        _account("comment", "author_id"),
    )
    _index("comment", "listed", "repo_id", "number", "created_at", "id")
    _index("comment", "posted", "author_id", "created_at")
    _table(
        "reaction",
        ["repo_id", "number", "comment_id", "name", "account_id"],
        _repo(),
        _number("number"),
        _text("comment_id"),
        _text("name"),
        _text("account_id"),
        _account("reaction", "account_id"),
        by_key=True,
    )


def _repo() -> sa.Column[Any]:
    return _text("repo_id")


def _text(name: str) -> sa.Column[Any]:
    return sa.Column(name, sa.String(), nullable=False)


def _number(name: str) -> sa.Column[Any]:
    return sa.Column(name, sa.BigInteger(), nullable=False, autoincrement=False)


def _account(table: str, column: str) -> sa.ForeignKeyConstraint:
    return sa.ForeignKeyConstraint([column], ["account.id"], name=op.f(f"fk_{table}_{column}"))


def _table(name: str, key: list[str], *parts: Any, by_key: bool = False) -> None:
    op.create_table(
        name,
        *parts,
        sa.ForeignKeyConstraint(["repo_id"], ["repo.id"], name=op.f(f"fk_{name}_repo_id")),
        sa.PrimaryKeyConstraint(*key, name=op.f(f"pk_{name}")),
        sqlite_with_rowid=not by_key,
    )


def _index(table: str, name: str, *columns: str) -> None:
    op.create_index(op.f(f"ix_{table}_{name}"), table, list(columns), unique=False)
