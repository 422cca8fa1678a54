"""Who was mentioned is kept for each post, open proposals are found by their head; invitations to organisations
are marked in the inbox, and organisations give all their members a role."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0034"
down_revision = "0033"


def upgrade() -> None:
    op.create_table(
        "mention",
        sa.Column("repo_id", sa.String(), nullable=False),
        sa.Column("number", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("post", sa.String(), nullable=False),
        sa.Column("handle", sa.String(), nullable=False),
        sa.ForeignKeyConstraint(["repo_id"], ["repo.id"], name=op.f("fk_mention_repo_id")),
        sa.PrimaryKeyConstraint("repo_id", "number", "post", "handle", name=op.f("pk_mention")),
        sqlite_with_rowid=False,
    )
    for mark, before in (("unread", sa.true()), ("done", sa.false())):
        column: sa.Column[bool] = sa.Column(mark, sa.Boolean(), nullable=False, server_default=before)
        op.add_column("member_invite", column)
    op.create_table(
        "base_role",
        sa.Column("org_id", sa.String(), nullable=False),
        sa.Column("role", sa.String(), nullable=False),
        sa.ForeignKeyConstraint(["org_id"], ["account.id"], name=op.f("fk_base_role_org_id")),
        sa.PrimaryKeyConstraint("org_id", name=op.f("pk_base_role")),
        sqlite_with_rowid=False,
    )
    op.create_index("ix_proposal_of_seal", "proposal", ["repo_id", "head_seal", "state"])
