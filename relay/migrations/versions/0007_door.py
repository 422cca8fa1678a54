"""Addresses that people signed in from; the live updates behind each seal; local accounts are called local."""

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"

ACCOUNTS = sa.table("account", sa.column("kind", sa.String()), sa.column("phase", sa.String()))


def upgrade() -> None:
    op.create_table(
        "known_address",
        sa.Column("account_id", sa.String(), nullable=False),
        sa.Column("network", sa.String(), nullable=False),
        sa.Column("seen_at", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(
            ["account_id"], ["account.id"], name=op.f("fk_known_address_account_id")
        ),
        sa.PrimaryKeyConstraint("account_id", "network", name=op.f("pk_known_address")),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "live_batch",
        sa.Column("branch_id", sa.String(), nullable=False),
        sa.Column("seq", sa.BigInteger(), nullable=False),
        sa.Column("changes", sa.LargeBinary(), nullable=False),
        sa.Column("edits", sa.LargeBinary(), nullable=True),
        sa.ForeignKeyConstraint(["branch_id"], ["ref.id"], name=op.f("fk_live_batch_branch_id")),
        sa.PrimaryKeyConstraint("branch_id", "seq", name=op.f("pk_live_batch")),
    )
    op.create_table(
        "seal_live",
        sa.Column("seal_id", sa.String(), nullable=False),
        sa.Column("branch_id", sa.String(), nullable=False),
        sa.Column("after_seq", sa.BigInteger(), nullable=False),
        sa.Column("upto_seq", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(["branch_id"], ["ref.id"], name=op.f("fk_seal_live_branch_id")),
        sa.ForeignKeyConstraint(["seal_id"], ["seal.id"], name=op.f("fk_seal_live_seal_id")),
        sa.PrimaryKeyConstraint("seal_id", name=op.f("pk_seal_live")),
        sqlite_with_rowid=False,
    )
    op.execute(
        sa.update(ACCOUNTS)
        .where(ACCOUNTS.c.kind == "user", ACCOUNTS.c.phase == "oidc_linked")  # no build had OIDC until here
        .values(phase="local")
    )
