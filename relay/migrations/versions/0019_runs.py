"""Seals have runs of checks, and repositories say which checks have to pass."""

import sqlalchemy as sa
from alembic import op

revision = "0019"
down_revision = "0018"


def upgrade() -> None:
    op.create_table(
        "run",
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("repo_id", sa.String(), nullable=False),
        sa.Column("seal_id", sa.String(), nullable=False),
        sa.Column("branch", sa.String(), nullable=False),
        sa.Column("folded", sa.String(), nullable=False),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("attempt", sa.BigInteger(), nullable=False),
        sa.Column("newest", sa.Boolean(), nullable=False),
        sa.Column("status", sa.String(), nullable=False),
        sa.Column("conclusion", sa.String()),
        sa.Column("summary", sa.Text()),
        sa.Column("details_url", sa.Text()),
        sa.Column("reporter_id", sa.String(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("started_at", sa.BigInteger()),
        sa.Column("completed_at", sa.BigInteger()),
        sa.ForeignKeyConstraint(["repo_id"], ["repo.id"], name=op.f("fk_run_repo_id")),
        sa.ForeignKeyConstraint(["seal_id"], ["seal.id"], name=op.f("fk_run_seal_id")),
        sa.ForeignKeyConstraint(["reporter_id"], ["account.id"], name=op.f("fk_run_reporter_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_run")),
    )
    op.create_index("ix_run_listed", "run", ["repo_id", "id"])
    op.create_index("uq_run_attempt", "run", ["repo_id", "seal_id", "folded", "attempt"], unique=True)
    op.create_index("ix_run_of_branch", "run", ["repo_id", "branch", "id"])
    op.create_index("ix_run_of_name", "run", ["repo_id", "folded", "id"])
    op.create_index("ix_run_of_status", "run", ["repo_id", "status", "id"])
    op.create_index("ix_run_of_conclusion", "run", ["repo_id", "conclusion", "id"])
    op.create_index("ix_run_reported", "run", ["reporter_id", "created_at"])
    op.create_index(op.f("ix_run_seal_id"), "run", ["seal_id"])
    op.create_table(
        "known_check",
        sa.Column("repo_id", sa.String(), nullable=False),
        sa.Column("folded", sa.String(), nullable=False),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("enabled", sa.Boolean(), nullable=False),
        sa.Column("last_run", sa.String()),
        sa.ForeignKeyConstraint(["repo_id"], ["repo.id"], name=op.f("fk_known_check_repo_id")),
        sa.PrimaryKeyConstraint("repo_id", "folded", name=op.f("pk_known_check")),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "check_rollup",
        sa.Column("repo_id", sa.String(), nullable=False),
        sa.Column("seal_id", sa.String(), nullable=False),
        sa.Column("total", sa.BigInteger(), nullable=False),
        sa.Column("passed", sa.BigInteger(), nullable=False),
        sa.Column("failed", sa.BigInteger(), nullable=False),
        sa.Column("pending", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(["repo_id"], ["repo.id"], name=op.f("fk_check_rollup_repo_id")),
        sa.ForeignKeyConstraint(["seal_id"], ["seal.id"], name=op.f("fk_check_rollup_seal_id")),
        sa.PrimaryKeyConstraint("repo_id", "seal_id", name=op.f("pk_check_rollup")),
        sqlite_with_rowid=False,
    )
