"""Forks hold seals and objects of the repository that they come from, and bases those of proposals; a repository
has several tree keys, one after the other."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0027"
down_revision = "0026"


def upgrade() -> None:
    op.create_table(
        "lineage",
        sa.Column("repo_id", sa.String(), nullable=False),
        sa.Column("of_id", sa.String(), nullable=False),
        sa.ForeignKeyConstraint(["repo_id"], ["repo.id"], name="fk_lineage_repo_id"),
        sa.PrimaryKeyConstraint("repo_id", "of_id", name="pk_lineage"),
        sqlite_with_rowid=False,
    )
    op.create_index("ix_lineage_of_id", "lineage", ["of_id"])
    op.create_table(
        "repo_seal",
        sa.Column("repo_id", sa.String(), nullable=False),
        sa.Column("seal_id", sa.String(), nullable=False),
        sa.ForeignKeyConstraint(["repo_id"], ["repo.id"], name="fk_repo_seal_repo_id"),
        sa.ForeignKeyConstraint(["seal_id"], ["seal.id"], name="fk_repo_seal_seal_id"),
        sa.PrimaryKeyConstraint("repo_id", "seal_id", name="pk_repo_seal"),
        sqlite_with_rowid=False,
    )
    op.create_index("ix_repo_seal_seal_id", "repo_seal", ["seal_id"])
    op.create_table(
        "lent_object",
        sa.Column("repo_id", sa.String(), nullable=False),
        sa.Column("digest", sa.LargeBinary(), nullable=False),
        sa.ForeignKeyConstraint(["repo_id"], ["repo.id"], name="fk_lent_object_repo_id"),
        sa.PrimaryKeyConstraint("repo_id", "digest", name="pk_lent_object"),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "tree_key",
        sa.Column("repo_id", sa.String(), nullable=False),
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("key", sa.LargeBinary(), nullable=False),
        sa.ForeignKeyConstraint(["repo_id"], ["repo.id"], name="fk_tree_key_repo_id"),
        sa.PrimaryKeyConstraint("repo_id", "id", name="pk_tree_key"),
        sqlite_with_rowid=False,
    )
    op.create_index("ix_repo_parent_id", "repo", ["parent_id"])
    op.create_index("ix_proposal_from_repo", "proposal", ["head_repo_id", "state"])
