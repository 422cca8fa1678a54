"""Invitations, requests for access and transfers."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0015"
down_revision = "0014"


def _column(name: str, kind: Any = sa.String) -> sa.Column[Any]:
    return sa.Column(name, kind(), nullable=False)


def _to(table: str, column: str, other: str) -> sa.ForeignKeyConstraint:
    return sa.ForeignKeyConstraint([column], [f"{other}.id"], name=op.f(f"fk_{table}_{column}"))


def upgrade() -> None:
    pending = sa.text("state = 'pending'")
    op.create_table(
        "invite",
        _column("id"),
        _column("repo_id"),
        _column("account_id"),
        _column("inviter_id"),
        _column("role"),
        _column("state"),
        _column("created_at", sa.BigInteger),
        _column("valid_until", sa.BigInteger),
        _to("invite", "repo_id", "repo"),
        _to("invite", "account_id", "account"),
        _to("invite", "inviter_id", "account"),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_invite")),
    )
    open_ones: dict[str, Any] = {"unique": True, "sqlite_where": pending, "postgresql_where": pending}
    op.create_index("uq_invite_open", "invite", ["repo_id", "account_id"], **open_ones)
    op.create_index("ix_invite_of_account", "invite", ["account_id", "id"])
    op.create_index("ix_invite_of_inviter", "invite", ["inviter_id", "created_at"])
    op.create_table(
        "access_request",
        _column("id"),
        _column("repo_id"),
        _column("account_id"),
        _column("role"),
        _column("note", sa.Text),
        _column("state"),
        _column("created_at", sa.BigInteger),
        _to("access_request", "repo_id", "repo"),
        _to("access_request", "account_id", "account"),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_access_request")),
    )
    op.create_index("uq_access_request_open", "access_request", ["repo_id", "account_id"], **open_ones)
    op.create_index("ix_access_request_of_account", "access_request", ["account_id"])
    op.create_table(
        "transfer",
        _column("id"),
        _column("repo_id"),
        _column("sender_id"),
        _column("account_id"),
        _column("state"),
        _column("created_at", sa.BigInteger),
        _column("valid_until", sa.BigInteger),
        _to("transfer", "repo_id", "repo"),
        _to("transfer", "sender_id", "account"),
        _to("transfer", "account_id", "account"),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_transfer")),
    )
    op.create_index("uq_transfer_open", "transfer", ["repo_id"], **open_ones)
    op.create_index("ix_transfer_of_account", "transfer", ["account_id", "id"])
    op.create_index("ix_transfer_of_sender", "transfer", ["sender_id", "id"])
