"""Repositories have labels."""

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"


def upgrade() -> None:
    op.create_table(
        "label",
        sa.Column("repo_id", sa.String(), nullable=False),
        sa.Column("folded", sa.String(), nullable=False),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("color", sa.String(), nullable=False),
        sa.Column("description", sa.Text(), nullable=True),
        sa.ForeignKeyConstraint(["repo_id"], ["repo.id"], name=op.f("fk_label_repo_id")),
        sa.PrimaryKeyConstraint("repo_id", "folded", name=op.f("pk_label")),
        sqlite_with_rowid=False,
    )
