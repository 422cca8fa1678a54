"""Repositories have proposals, with versions, reviewers and reviews."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0017"
down_revision = "0016"


def upgrade() -> None:
    _table(
        "proposal",
        ["repo_id", "number"],
        _text("state"),
        _flag("draft"),
        _text("head_repo_id", True),
        _text("head_id"),
        _text("head"),
        _text("base_id"),
        _text("base"),
        _count("version"),
        _text("head_seal"),
        _text("merged_seal", True),
    )
    _index("proposal", "of_state", "repo_id", "state", "number")
    _index("proposal", "of_head", "repo_id", "head", "state", "number")
    _index("proposal", "of_base", "repo_id", "base", "state", "number")
    _index("proposal", "of_draft", "repo_id", "draft", "state", "number")
    _index("proposal", "head_moves", "head_id", "state")
    _index("proposal", "base_moves", "base_id", "state")
    _table(
        "version",
        ["repo_id", "number", "n"],
        _count("n"),
        _text("head"),
        _text("base"),
        _flag("settled"),
        _text("merge_base", True),
        _text("change_id", True),
        _text("by_id"),
        _count("created_at"),
        _account("version", "by_id"),
        by_key=True,
    )
    _table(
        "reviewer",
        ["repo_id", "number", "account_id"],
        _text("account_id"),
        _text("state"),
        _flag("requested"),
        _text("review_id", True),
        _account("reviewer", "account_id"),
        by_key=True,
    )
    _index("reviewer", "listed", "account_id", "repo_id", "state", "number")
    _table(
        "review",
        ["id"],
        _text("id"),
        _text("account_id"),
        _text("verdict"),
        sa.Column("body", sa.Text(), nullable=False),
        _count("version"),
        _text("seal_id"),
        _count("created_at"),
        sa.Column("dismissed_at", sa.BigInteger(), nullable=True),
        _account("review", "account_id"),
    )
    _index("review", "listed", "repo_id", "number", "created_at", "id")
    _index("review", "posted", "account_id", "created_at")
    _table("closing", ["repo_id", "number", "issue"], _count("issue"), by_key=True)


def _text(name: str, nullable: bool = False) -> sa.Column[Any]:
    return sa.Column(name, sa.String(), nullable=nullable)


def _flag(name: str) -> sa.Column[Any]:
    return sa.Column(name, sa.Boolean(), nullable=False)


def _count(name: str) -> sa.Column[Any]:
    return sa.Column(name, sa.BigInteger(), nullable=False, autoincrement=False)


def _account(table: str, column: str) -> sa.ForeignKeyConstraint:
    return sa.ForeignKeyConstraint([column], ["account.id"], name=op.f(f"fk_{table}_{column}"))


def _table(name: str, key: list[str], *parts: Any, by_key: bool = False) -> None:
    op.create_table(
        name,
        _text("repo_id"),
        _count("number"),
        *parts,
        sa.ForeignKeyConstraint(["repo_id"], ["repo.id"], name=op.f(f"fk_{name}_repo_id")),
        sa.PrimaryKeyConstraint(*key, name=op.f(f"pk_{name}")),
        sqlite_with_rowid=not by_key,
    )


def _index(table: str, name: str, *columns: str) -> None:
    op.create_index(op.f(f"ix_{table}_{name}"), table, list(columns), unique=False)
