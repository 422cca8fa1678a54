"""Adds the tables of sign-ins by identity providers."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0041"
down_revision = "0039"


def upgrade() -> None:
    op.add_column("session", sa.Column("way", sa.String(), nullable=True))
    op.create_table(
        "login",
        sa.Column("issuer", sa.String(), nullable=False),
        sa.Column("subject", sa.String(), nullable=False),
        sa.Column("account_id", sa.String(), nullable=False),
        sa.Column("provider", sa.String(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("last_used_at", sa.BigInteger(), nullable=True),
        sa.ForeignKeyConstraint(["account_id"], ["account.id"], name=op.f("fk_login_account_id_account")),
        sa.PrimaryKeyConstraint("issuer", "subject", name=op.f("pk_login")),
    )
    op.create_index(op.f("ix_login_account_id"), "login", ["account_id"])
    op.create_table(
        "login_flow",
        sa.Column("hash", sa.LargeBinary(), nullable=False),
        sa.Column("provider", sa.String(), nullable=False),
        sa.Column("state_hash", sa.LargeBinary(), nullable=False),
        sa.Column("nonce", sa.String(), nullable=False),
        sa.Column("verifier", sa.String(), nullable=False),
        sa.Column("return_to", sa.String(), nullable=False),
        sa.Column("link_account", sa.String(), nullable=True),
        sa.Column("issuer", sa.String(), nullable=True),
        sa.Column("subject", sa.String(), nullable=True),
        sa.Column("handle", sa.String(), nullable=True),
        sa.Column("expires_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("hash", name=op.f("pk_login_flow")),
    )
