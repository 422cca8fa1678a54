"""Forget kept owners of lines: they did not follow files that moved and changed at once. They are made anew
when somebody asks.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"


def upgrade() -> None:
    """The cache is empty."""
    op.execute(sa.table("blame_cache").delete())
