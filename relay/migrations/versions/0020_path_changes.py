"""The rules for paths have a timeline."""

import sqlalchemy as sa
from alembic import op

revision = "0020"
down_revision = "0019"


def upgrade() -> None:
    op.create_table(
        "path_change",
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("repo_id", sa.String(), nullable=False),
        sa.Column("path", sa.String(), nullable=False),
        sa.Column("was", sa.String()),
        sa.Column("became", sa.String()),
        sa.Column("author_id", sa.String(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(["repo_id"], ["repo.id"], name=op.f("fk_path_change_repo_id")),
        sa.ForeignKeyConstraint(["author_id"], ["account.id"], name=op.f("fk_path_change_author_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_path_change")),
    )
    op.create_index("ix_path_change_listed", "path_change", ["repo_id", "id"])
