"""Organisations: members, invitations to them, and roles that somebody has through one."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0030"
down_revision = "0029"


def _column(name: str, kind: Any = sa.String) -> sa.Column[Any]:
    return sa.Column(name, kind(), nullable=False)


def _account(table: str, column: str) -> sa.ForeignKeyConstraint:
    return sa.ForeignKeyConstraint([column], ["account.id"], name=op.f(f"fk_{table}_{column}"))


def upgrade() -> None:
    op.create_table(
        "member",
        _column("org_id"),
        _column("account_id"),
        _column("role"),
        _column("created_at", sa.BigInteger),
        _account("member", "org_id"),
        _account("member", "account_id"),
        sa.PrimaryKeyConstraint("org_id", "account_id", name=op.f("pk_member")),
        sqlite_with_rowid=False,
    )
    op.create_index("ix_member_account_id", "member", ["account_id"])
    op.create_table(
        "member_invite",
        _column("id"),
        _column("org_id"),
        _column("account_id"),
        _column("inviter_id"),
        _column("role"),
        _column("state"),
        _column("created_at", sa.BigInteger),
        _column("valid_until", sa.BigInteger),
        _account("member_invite", "org_id"),
        _account("member_invite", "account_id"),
        _account("member_invite", "inviter_id"),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_member_invite")),
    )
    pending = sa.text("state = 'pending'")
    op.create_index(
        "uq_member_invite_open",
        "member_invite",
        ["org_id", "account_id"],
        unique=True,
        sqlite_where=pending,
        postgresql_where=pending,
    )
    op.create_index("ix_member_invite_of_account", "member_invite", ["account_id", "id"])
    op.create_table(
        "through",
        _column("repo_id"),
        _column("account_id"),
        _column("org_id"),
        sa.Column("given", sa.String(), nullable=True),
        sa.ForeignKeyConstraint(["repo_id"], ["repo.id"], name=op.f("fk_through_repo_id")),
        _account("through", "account_id"),
        _account("through", "org_id"),
        sa.PrimaryKeyConstraint("repo_id", "account_id", name=op.f("pk_through")),
        sqlite_with_rowid=False,
    )
    op.create_index("ix_through_of_member", "through", ["org_id", "account_id"])
