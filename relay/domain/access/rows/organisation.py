"""SQL statements on organisations: members, invitations, and the roles that members have through them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sqlalchemy import and_, bindparam, delete, func, insert, select, update

from relay.db.engine.database import Row
from relay.db.engine.keyset import Keyset
from relay.db.engine.upsert import InsertOrReplace
from relay.db.schema.account import account
from relay.db.schema.collaboration.access import transfer
from relay.db.schema.collaboration.organisation import base_role, member, member_invite
from relay.db.schema.repo import repo
from relay.domain.access.rows.offer import OfferRow, select_offers


@dataclass(slots=True, frozen=True)
class OrganisationRow:
    """An organisation as one of its members sees it. `role`: the role of this member. `members`: how many it
    has. `base_role`: the role of all members in its repositories, if they have one."""

    id: str
    handle: str
    role: Any
    members: int
    created_at: int
    base_role: Any


@dataclass(slots=True, frozen=True)
class MemberRow:
    account_id: str
    handle: str | None
    kind: str
    role: Any
    created_at: int


@dataclass(slots=True, frozen=True)
class MemberInviteRow(OfferRow):
    org_id: str
    org_handle: str
    role: Any


_ORG: Any = bindparam("of_org")
_WHO: Any = bindparam("who")
_NOW: Any = bindparam("now")
_REPO: Any = bindparam("of_repo")

# Organisations.
_other = member.alias("other")
_MEMBERS = (
    select(func.count())
    .select_from(_other)
    .where(_other.c.org_id == account.c.id)
    .correlate(account)
    .scalar_subquery()
)
_ORGS = (
    select(
        account.c.id,
        account.c.handle,
        member.c.role,
        _MEMBERS.label("members"),
        account.c.created_at,
        base_role.c.role.label("base_role"),
    )
    .select_from(
        member.join(account, account.c.id == member.c.org_id).outerjoin(
            base_role, base_role.c.org_id == member.c.org_id
        )
    )
    .where(member.c.account_id == _WHO, account.c.kind == "org", account.c.disabled_at.is_(None))
)
MINE = Keyset(_ORGS, "handle")
BY_HANDLE = _ORGS.where(account.c.handle == bindparam("handle"))
BY_ID = _ORGS.where(account.c.id == _ORG)
ADMINISTERED = (
    select(func.count())
    .select_from(member.join(account, account.c.id == member.c.org_id))
    .where(member.c.account_id == _WHO, member.c.role == "admin", account.c.disabled_at.is_(None))
)
IS_ADMIN = select(member.c.role).where(
    member.c.org_id == _ORG, member.c.account_id == _WHO, member.c.role == "admin"
)

# Members.
_IS = and_(member.c.org_id == _ORG, member.c.account_id == _WHO)
_PEOPLE = (
    select(account.c.id, account.c.handle, account.c.kind, member.c.role, member.c.created_at)
    .select_from(member.join(account, account.c.id == member.c.account_id))
    .where(member.c.org_id == _ORG)
)
MEMBERS = Keyset(_PEOPLE, "id")
MEMBER = _PEOPLE.where(member.c.account_id == _WHO)
COUNT = select(func.count()).select_from(member).where(member.c.org_id == _ORG)
ADMINS = COUNT.where(member.c.role == "admin")
ADD = insert(member)
SET_ROLE = update(member).where(_IS).values(role=bindparam("new_role"))
REMOVE = delete(member).where(_IS)
REMOVE_ALL = delete(member).where(member.c.org_id == _ORG)

# Invitations.
_org = account.alias("org")
_INVITES = select_offers(
    member_invite,
    "inviter_id",
    member_invite.join(_org, _org.c.id == member_invite.c.org_id),
    _org.c.id.label("its_org"),
    _org.c.handle.label("org_handle"),
    member_invite.c.role,
).where(_org.c.disabled_at.is_(None))
_OPEN = and_(member_invite.c.state == "pending", member_invite.c.valid_until > _NOW)
INVITE = _INVITES.where(member_invite.c.id == bindparam("id"))
INVITES = Keyset(_INVITES.where(member_invite.c.org_id == _ORG, _OPEN), "-id")
MY_INVITES = Keyset(_INVITES.where(member_invite.c.account_id == _WHO, _OPEN), "-id")
OPEN_INVITE = _INVITES.where(member_invite.c.org_id == _ORG, member_invite.c.account_id == _WHO, _OPEN)
OPEN_INVITES = select(func.count()).select_from(member_invite).where(member_invite.c.org_id == _ORG, _OPEN)
ADD_INVITE = insert(member_invite)
END_INVITE = (
    update(member_invite)
    .where(member_invite.c.id == bindparam("of_id"), member_invite.c.state == "pending")
    .values(state=bindparam("new_state"))
)
# Its marks are those of the inviter from now on.
DECLINE_INVITE = (
    update(member_invite)
    .where(member_invite.c.id == bindparam("of_id"), member_invite.c.state == "pending")
    .values(state="declined", answered_at=_NOW, unread=True, done=False)
)
SET_INVITED_ROLE = (
    update(member_invite).where(member_invite.c.id == bindparam("of_id")).values(role=bindparam("new_role"))
)
EXPIRE_INVITE = (
    update(member_invite)
    .where(
        member_invite.c.org_id == _ORG,
        member_invite.c.account_id == _WHO,
        member_invite.c.state == "pending",
        member_invite.c.valid_until <= _NOW,
    )
    .values(state="expired")
)
CANCEL_INVITES = (
    update(member_invite)
    .where(member_invite.c.org_id == _ORG, member_invite.c.state == "pending")
    .values(state="cancelled")
)

# Repositories, those that are deleted and can be restored among them.
OWNED = select(repo.c.id).where(repo.c.owner_id == _ORG)
OWNED_COUNT = select(func.count()).select_from(repo).where(repo.c.owner_id == _ORG)

# The role of all members.
SET_BASE = InsertOrReplace(base_role)
DROP_BASE = delete(base_role).where(base_role.c.org_id == _ORG)

CANCEL_TRANSFERS_TO = (
    update(transfer)
    .where(transfer.c.account_id == _ORG, transfer.c.state == "pending")
    .values(state="cancelled")
)
DISBAND = (
    update(account).where(account.c.id == _ORG, account.c.kind == "org").values(handle=None, disabled_at=_NOW)
)


def to_row(values: Row) -> OrganisationRow:
    return OrganisationRow(*values)


def to_member(values: Row) -> MemberRow:
    return MemberRow(*values)


def to_invite(values: Row) -> MemberInviteRow:
    return MemberInviteRow(*values)
