"""What a seal without parents changed is its tree, and has no rows of its own."""

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"

SEALS = sa.table("seal", sa.column("id", sa.String()), sa.column("generation", sa.BigInteger()))
CHANGES = sa.table("seal_change", sa.column("seal_id", sa.String()))


def upgrade() -> None:
    first = sa.select(SEALS.c.id).where(SEALS.c.generation == 1)
    op.get_bind().execute(sa.delete(CHANGES).where(CHANGES.c.seal_id.in_(first)))
