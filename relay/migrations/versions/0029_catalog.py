"""Listings, signed publications, dependents and advisories."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0029"
down_revision = "0028"


def upgrade() -> None:
    op.create_table(
        "listing",
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("repo_id", sa.String(), nullable=False),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("category", sa.String(), nullable=True),
        sa.Column("screenshots", sa.Text(), nullable=False),
        sa.Column("readme_images", sa.String(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("updated_at", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(["repo_id"], ["repo.id"], name=op.f("fk_listing_repo_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_listing")),
        sa.UniqueConstraint("repo_id", name=op.f("uq_listing_repo_id")),
    )
    op.create_table(
        "publication",
        sa.Column("release_id", sa.String(), nullable=False),
        sa.Column("repo_id", sa.String(), nullable=False),
        sa.Column("signature", sa.LargeBinary(), nullable=False),
        sa.Column("device_key_id", sa.String(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(["release_id"], ["release.id"], name=op.f("fk_publication_release_id")),
        sa.ForeignKeyConstraint(["repo_id"], ["repo.id"], name=op.f("fk_publication_repo_id")),
        sa.ForeignKeyConstraint(
            ["device_key_id"], ["device_key.id"], name=op.f("fk_publication_device_key_id")
        ),
        sa.PrimaryKeyConstraint("release_id", name=op.f("pk_publication")),
        sqlite_with_rowid=False,
    )
    op.create_index("ix_publication_repo_id", "publication", ["repo_id"])
    op.create_table(
        "dependency",
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("repo_id", sa.String(), nullable=False),
        sa.ForeignKeyConstraint(["repo_id"], ["repo.id"], name=op.f("fk_dependency_repo_id")),
        sa.PrimaryKeyConstraint("name", "repo_id", name=op.f("pk_dependency")),
        sqlite_with_rowid=False,
    )
    op.create_index("ix_dependency_repo_id", "dependency", ["repo_id"])
    op.create_table(
        "advisory",
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("repo_id", sa.String(), nullable=False),
        sa.Column("record", sa.LargeBinary(), nullable=False),
        sa.Column("published_at", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(["repo_id"], ["repo.id"], name=op.f("fk_advisory_repo_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_advisory")),
    )
    op.create_index("ix_advisory_repo_id", "advisory", ["repo_id"])
    op.create_table(
        "advisory_package",
        sa.Column("ecosystem", sa.String(), nullable=False),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("advisory_id", sa.String(), nullable=False),
        sa.ForeignKeyConstraint(["advisory_id"], ["advisory.id"], name=op.f("fk_advisory_package_advisory_id")),
        sa.PrimaryKeyConstraint("ecosystem", "name", "advisory_id", name=op.f("pk_advisory_package")),
        sqlite_with_rowid=False,
    )
    op.create_index("ix_advisory_package_advisory_id", "advisory_package", ["advisory_id"])
