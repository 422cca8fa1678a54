"""What changed on a branch travels to its listeners as one frame, kept for those who were away for a moment."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0015"
down_revision = "0014"


def upgrade() -> None:
    op.create_table(
        "live_frame",
        sa.Column("branch_id", sa.String(), nullable=False),
        sa.Column("seq", sa.BigInteger(), nullable=False),
        sa.Column("after", sa.BigInteger(), nullable=False),
        sa.Column("body", sa.LargeBinary(), nullable=True),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(["branch_id"], ["ref.id"], name=op.f("fk_live_frame_branch_id")),
        sa.PrimaryKeyConstraint("branch_id", "seq", name=op.f("pk_live_frame")),
    )
    op.create_index("ix_live_frame_created_at", "live_frame", ["created_at"])
