"""Who invited somebody to an organisation finds in the inbox that it was declined, and when."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0036"
down_revision = "0035"


def upgrade() -> None:
    op.add_column("member_invite", sa.Column("answered_at", sa.BigInteger()))
    op.create_index("ix_member_invite_of_inviter", "member_invite", ["inviter_id", "answered_at", "id"])
