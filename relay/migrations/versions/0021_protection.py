"""Branches are protected by patterns of their names."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0021"
down_revision = "0020"

_FLAGS = ("require_review", "require_checks", "lock_writes", "lock_deletions")


def upgrade() -> None:
    op.create_table(
        "protection",
        sa.Column("repo_id", sa.String(), nullable=False),
        sa.Column("pattern", sa.String(), nullable=False),
        *(sa.Column(name, sa.Boolean(), nullable=False) for name in _FLAGS),
        sa.Column("required_approvals", sa.Integer(), nullable=False),
        sa.Column("require_resolution", sa.Boolean(), nullable=False),
        sa.Column("fresh_approvals", sa.Boolean(), nullable=False),
        sa.ForeignKeyConstraint(["repo_id"], ["repo.id"], name=op.f("fk_protection_repo_id")),
        sa.PrimaryKeyConstraint("repo_id", "pattern", name=op.f("pk_protection")),
        sqlite_with_rowid=False,
    )
