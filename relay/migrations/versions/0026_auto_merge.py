"""Proposals keep a signed merge that lands when nothing blocks it."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0026"
down_revision = "0025"


def upgrade() -> None:
    op.create_table(
        "auto_merge",
        sa.Column("repo_id", sa.String(), nullable=False),
        sa.Column("number", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("prepare_id", sa.String(), nullable=False),
        sa.Column("account_id", sa.String(), nullable=False),
        sa.Column("principal", sa.Text(), nullable=False),
        sa.Column("body", sa.Text(), nullable=False),
        sa.Column("strategy", sa.String(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(["repo_id"], ["repo.id"], name=op.f("fk_auto_merge_repo_id")),
        sa.ForeignKeyConstraint(["account_id"], ["account.id"], name=op.f("fk_auto_merge_account_id")),
        sa.PrimaryKeyConstraint("repo_id", "number", name=op.f("pk_auto_merge")),
        sqlite_with_rowid=False,
    )
    op.create_index(op.f("ix_auto_merge_account_id"), "auto_merge", ["account_id"])
