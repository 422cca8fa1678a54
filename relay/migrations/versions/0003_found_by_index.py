"""The last checkpoint of a branch, and jobs that are to be done, are found without reading all of them."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    op.create_index("ix_checkpoint_last", "checkpoint", ["branch_id", "seq", "created_at"], unique=False)
    op.drop_index(op.f("ix_checkpoint_branch_id"), table_name="checkpoint")
    is_open = sa.text("done_at IS NULL")
    op.create_index(
        "ix_job_open", "job", ["run_at"], unique=False, sqlite_where=is_open, postgresql_where=is_open
    )
    op.drop_index(op.f("ix_job_run_at"), table_name="job")
