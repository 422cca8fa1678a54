"""Adds the table of pairings by QR code."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0042"
down_revision = "0041"


def upgrade() -> None:
    op.create_table(
        "pairing",
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("account_id", sa.String(), nullable=False),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("commitment", sa.LargeBinary(), nullable=False),
        sa.Column("opening", sa.LargeBinary(), nullable=True),
        sa.Column("ed25519", sa.LargeBinary(), nullable=True),
        sa.Column("x25519", sa.LargeBinary(), nullable=True),
        sa.Column("nonce", sa.LargeBinary(), nullable=True),
        sa.Column("registration", sa.LargeBinary(), nullable=True),
        sa.Column("ended_at", sa.BigInteger(), nullable=True),
        sa.Column("refused", sa.Boolean(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("expires_at", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(["account_id"], ["account.id"], name=op.f("fk_pairing_account_id_account")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_pairing")),
    )
    op.create_index(op.f("ix_pairing_account_id"), "pairing", ["account_id"])
