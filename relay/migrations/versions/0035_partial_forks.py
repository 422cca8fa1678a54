"""A repository may have trees of another's seals in part: a fork by somebody who does not see all of them."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0035"
down_revision = "0034"


def upgrade() -> None:
    op.add_column("repo_seal", sa.Column("root", sa.LargeBinary()))
    op.add_column("repo", sa.Column("partial", sa.Boolean()))
