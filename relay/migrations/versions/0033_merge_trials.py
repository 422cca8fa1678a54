"""Proposals remember which files a merge of their head into their base would conflict in."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0033"
down_revision = "0032"


def upgrade() -> None:
    op.create_table(
        "merge_trial",
        sa.Column("repo_id", sa.String(), nullable=False),
        sa.Column("number", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("head", sa.String(), nullable=False),
        sa.Column("base", sa.String(), nullable=False),
        sa.Column("conflicts", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(["repo_id"], ["repo.id"], name=op.f("fk_merge_trial_repo_id")),
        sa.PrimaryKeyConstraint("repo_id", "number", name=op.f("pk_merge_trial")),
        sqlite_with_rowid=False,
    )
