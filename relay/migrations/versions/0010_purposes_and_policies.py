"""What is prepared has a purpose; paths have a policy, and a repository the number of its policy."""

import sqlalchemy as sa
from alembic import op

revision = "0010"
down_revision = "0009"

PREPARED = sa.table("prepare", sa.column("purpose", sa.String()), sa.column("at_seq", sa.BigInteger()))


def upgrade() -> None:
    op.add_column("prepare", sa.Column("purpose", sa.String(), nullable=False, server_default="seals"))
    op.add_column("prepare", sa.Column("subject", sa.String(), nullable=True))
    op.execute(sa.update(PREPARED).where(PREPARED.c.at_seq.is_not(None)).values(purpose="seal"))
    op.add_column("repo", sa.Column("policy", sa.BigInteger(), nullable=True))
    op.create_table(
        "path_policy",
        sa.Column("repo_id", sa.String(), nullable=False),
        sa.Column("path", sa.String(), nullable=False),
        sa.Column("visibility", sa.String(), nullable=False),
        sa.ForeignKeyConstraint(["repo_id"], ["repo.id"], name=op.f("fk_path_policy_repo_id")),
        sa.PrimaryKeyConstraint("repo_id", "path", name=op.f("pk_path_policy")),
        sqlite_with_rowid=False,
    )
