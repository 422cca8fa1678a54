"""Seals name what they were merged from, for merge bases."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0018"
down_revision = "0017"


def upgrade() -> None:
    """No seal so far was merged from another without having it as a parent; `rank` is absent for those."""
    with op.batch_alter_table("seal") as seal:
        seal.add_column(sa.Column("rank", sa.BigInteger(), nullable=True))
    op.create_table(
        "seal_source",
        sa.Column("seal_id", sa.String(), nullable=False),
        sa.Column("position", sa.Integer(), nullable=False),
        sa.Column("source_id", sa.String(), nullable=False),
        sa.ForeignKeyConstraint(["seal_id"], ["seal.id"], name="fk_seal_source_seal_id_seal"),
        sa.PrimaryKeyConstraint("seal_id", "position", name="pk_seal_source"),
        sqlite_with_rowid=False,
    )
