"""Tables of organisations, which are accounts of kind `org`: members, invitations, and the roles that members
have through an organisation.
"""

from __future__ import annotations

from sqlalchemy import Boolean, Column, ForeignKey, Index, String, Table, false, text, true

from relay.db.schema.base import BY_KEY, at, metadata

_PENDING = text("state = 'pending'")

member = Table(
    "member",
    metadata,
    Column("org_id", ForeignKey("account.id"), primary_key=True),
    Column("account_id", ForeignKey("account.id"), primary_key=True, index=True),
    Column("role", String, nullable=False),  # admin, member
    at("created_at"),
    **BY_KEY,
)

member_invite = Table(
    "member_invite",
    metadata,
    Column("id", String, primary_key=True),
    Column("org_id", ForeignKey("account.id"), nullable=False),
    Column("account_id", ForeignKey("account.id"), nullable=False),
    Column("inviter_id", ForeignKey("account.id"), nullable=False),
    Column("role", String, nullable=False),
    Column("state", String, nullable=False),  # as of an invitation to a repository
    at("created_at"),
    at("valid_until"),
    # In the inbox of the account; once it is declined, in that of the inviter.
    Column("unread", Boolean, nullable=False, server_default=true()),
    Column("done", Boolean, nullable=False, server_default=false()),
    at("answered_at", True),  # when it was declined
    Index(
        "uq_member_invite_open",
        "org_id",
        "account_id",
        unique=True,
        sqlite_where=_PENDING,
        postgresql_where=_PENDING,
    ),
    Index("ix_member_invite_of_account", "account_id", "id"),
    Index("ix_member_invite_of_inviter", "inviter_id", "answered_at", "id"),
)

# The role that all members of an organisation have in what it owns; no row: none.
base_role = Table(
    "base_role",
    metadata,
    Column("org_id", ForeignKey("account.id"), primary_key=True),
    Column("role", String, nullable=False),  # admin, write, triage, read
    **BY_KEY,
)

# The source of a collaborator's role: the organisation that it is an admin of (role owner), or a member of
# (its base role).
through = Table(
    "through",
    metadata,
    Column("repo_id", ForeignKey("repo.id"), primary_key=True),
    Column("account_id", ForeignKey("account.id"), primary_key=True),
    Column("org_id", ForeignKey("account.id"), nullable=False),
    Column("given", String),  # the role that was given to it beside; None: none was
    Index("ix_through_of_member", "org_id", "account_id"),
    **BY_KEY,
)
