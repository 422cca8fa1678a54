"""How accounts are named in commits of git is fixed when git first reads something of theirs."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0037"
down_revision = "0036"


def upgrade() -> None:
    op.create_table(
        "git_person",
        sa.Column("account_id", sa.String(), nullable=False),
        sa.Column("person", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("account_id", name=op.f("pk_git_person")),
        sqlite_with_rowid=False,
    )
