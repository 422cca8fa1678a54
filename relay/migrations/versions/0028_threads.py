"""Comments stand in threads on lines of a proposal."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0028"
down_revision = "0027"


def upgrade() -> None:
    op.create_table(
        "thread",
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("repo_id", sa.String(), nullable=False),
        sa.Column("number", sa.BigInteger(), nullable=False),
        sa.Column("author_id", sa.String(), nullable=False),
        sa.Column("path", sa.String(), nullable=False),
        sa.Column("side", sa.String(), nullable=False),
        sa.Column("first_line", sa.BigInteger(), nullable=False),
        sa.Column("last_line", sa.BigInteger(), nullable=False),
        sa.Column("seal_id", sa.String(), nullable=False),
        sa.Column("quote", sa.LargeBinary(), nullable=False),
        sa.Column("state", sa.String(), nullable=False),
        sa.Column("draft", sa.Boolean(), nullable=False),
        sa.Column("suggestion", sa.Text(), nullable=True),
        sa.Column("applied_seal", sa.String(), nullable=True),
        sa.Column("at_seal", sa.String(), nullable=False),
        sa.Column("at_path", sa.String(), nullable=False),
        sa.Column("at_from", sa.BigInteger(), nullable=False),
        sa.Column("at_to", sa.BigInteger(), nullable=False),
        sa.Column("at_first", sa.BigInteger(), nullable=False),
        sa.Column("at_last", sa.BigInteger(), nullable=False),
        sa.Column("how", sa.String(), nullable=False),
        sa.Column("carried_to", sa.String(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("updated_at", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(["author_id"], ["account.id"], name=op.f("fk_thread_author_id")),
        sa.ForeignKeyConstraint(["repo_id"], ["repo.id"], name=op.f("fk_thread_repo_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_thread")),
    )
    op.create_index("ix_thread_listed", "thread", ["repo_id", "number", "created_at", "id"])
    op.create_index("ix_thread_of_state", "thread", ["repo_id", "number", "draft", "state"])
    op.add_column("comment", sa.Column("thread_id", sa.String(), nullable=True))
    op.add_column("comment", sa.Column("draft", sa.Boolean(), nullable=False, server_default=sa.false()))
    op.add_column("comment", sa.Column("review_id", sa.String(), nullable=True))
    op.create_index("ix_comment_of_thread", "comment", ["thread_id", "created_at", "id"])
    op.create_index("ix_comment_of_review", "comment", ["review_id"])
