"""A seal finds the texts that were edited without reading all files of the branch, and keeps the short log of an
epoch that ends instead of a whole state of its text."""

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"


def upgrade() -> None:
    op.create_index(
        "ix_lane_edited",
        "lane",
        ["branch_id", "ver"],
        unique=False,
        sqlite_where=sa.text("edited = 1"),
        postgresql_where=sa.text("edited"),
    )
    with op.batch_alter_table("lane_final") as final:
        final.alter_column("state", existing_type=sa.LargeBinary(), nullable=True)
