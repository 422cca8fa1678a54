"""What an account created within the last hour, of each kind."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0031"
down_revision = "0030"


def upgrade() -> None:
    op.create_table(
        "created",
        sa.Column("account_id", sa.String(), nullable=False),
        sa.Column("kind", sa.String(), nullable=False),
        sa.Column("made", sa.BigInteger(), nullable=False),
        sa.Column("expires_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("account_id", "kind", name=op.f("pk_created")),
        sqlite_with_rowid=False,
    )
    op.create_index("ix_created_expires_at", "created", ["expires_at"])
