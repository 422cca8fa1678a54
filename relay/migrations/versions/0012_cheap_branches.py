"""A branch names the tree that its frontier began with, instead of a row for every file of it."""

import sqlalchemy as sa
from alembic import op

revision = "0012"
down_revision = "0011"


def upgrade() -> None:
    op.add_column("ref", sa.Column("base", sa.LargeBinary(), nullable=True))
