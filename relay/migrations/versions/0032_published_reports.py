"""Reports name the advisory that was published of them."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0032"
down_revision = "0031"


def upgrade() -> None:
    op.add_column("report", sa.Column("advisory_id", sa.String(), nullable=True))
