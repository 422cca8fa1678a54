"""Repositories have releases, and these have assets."""

import sqlalchemy as sa
from alembic import op

revision = "0013"
down_revision = "0012"


def upgrade() -> None:
    op.create_table(
        "release",
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("repo_id", sa.String(), nullable=False),
        sa.Column("version", sa.String(), nullable=False),
        sa.Column("seal_id", sa.String(), nullable=False),
        sa.Column("notes", sa.Text(), nullable=False),
        sa.Column("author_id", sa.String(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(["repo_id"], ["repo.id"], name=op.f("fk_release_repo_id")),
        sa.ForeignKeyConstraint(["seal_id"], ["seal.id"], name=op.f("fk_release_seal_id")),
        sa.ForeignKeyConstraint(["author_id"], ["account.id"], name=op.f("fk_release_author_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_release")),
    )
    op.create_index("uq_release_repo_id_version", "release", ["repo_id", "version"], unique=True)
    op.create_index("ix_release_repo_id_id", "release", ["repo_id", "id"])
    op.create_index(op.f("ix_release_seal_id"), "release", ["seal_id"])
    op.create_table(
        "release_asset",
        sa.Column("release_id", sa.String(), nullable=False),
        sa.Column("folded", sa.String(), nullable=False),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("digest", sa.LargeBinary(), nullable=False),
        sa.Column("size", sa.BigInteger(), nullable=False),
        sa.Column("content_type", sa.String(), nullable=False),
        sa.Column("uploader_id", sa.String(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(["release_id"], ["release.id"], name=op.f("fk_release_asset_release_id")),
        sa.ForeignKeyConstraint(["uploader_id"], ["account.id"], name=op.f("fk_release_asset_uploader_id")),
        sa.PrimaryKeyConstraint("release_id", "folded", name=op.f("pk_release_asset")),
        sqlite_with_rowid=False,
    )
