"""Statements on organisations: members, invitations, and the roles that admins have by them."""

from __future__ import annotations

from typing import Any

from sqlalchemy import (
    BigInteger,
    String,
    and_,
    bindparam,
    case,
    delete,
    func,
    insert,
    literal,
    or_,
    select,
    update,
)

from relay.db.engine.keyset import Keyset
from relay.db.schema.account import account
from relay.db.schema.collaboration.access import access_request, invite, transfer
from relay.db.schema.collaboration.organisation import member, member_invite, through
from relay.db.schema.repo import collaborator, repo

_ORG: Any = bindparam("of_org")
_WHO: Any = bindparam("who")
_NOW: Any = bindparam("now")
_REPO: Any = bindparam("of_repo")
OWNER = "owner"  # the role of an organisation's admins in its repositories

# Organisations: id, handle, the role of `who`, members, created.
_other = member.alias("other")
_MEMBERS = (
    select(func.count())
    .select_from(_other)
    .where(_other.c.org_id == account.c.id)
    .correlate(account)
    .scalar_subquery()
)
_ORGS = (
    select(account.c.id, account.c.handle, member.c.role, _MEMBERS.label("members"), account.c.created_at)
    .select_from(member.join(account, account.c.id == member.c.org_id))
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

# Members: account id, handle, kind, role, since.
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

# Invitations: id, organisation (id, handle), account (id, handle, kind), inviter (the same), role, state,
# created, end. An open one past its end counts as expired.
_org, _whom, _by = account.alias("org"), account.alias("whom"), account.alias("by_whom")
_over = and_(member_invite.c.state == "pending", member_invite.c.valid_until <= _NOW)
_INVITES = (
    select(
        member_invite.c.id,
        _org.c.id.label("its_org"),
        _org.c.handle.label("org_handle"),
        _whom.c.id.label("whom"),
        _whom.c.handle.label("whom_handle"),
        _whom.c.kind.label("whom_kind"),
        _by.c.id.label("maker"),
        _by.c.handle.label("maker_handle"),
        _by.c.kind.label("maker_kind"),
        member_invite.c.role,
        case((_over, "expired"), else_=member_invite.c.state).label("state_now"),
        member_invite.c.created_at,
        member_invite.c.valid_until,
    )
    .select_from(
        member_invite.join(_org, _org.c.id == member_invite.c.org_id)
        .join(_whom, _whom.c.id == member_invite.c.account_id)
        .join(_by, _by.c.id == member_invite.c.inviter_id)
    )
    .where(_org.c.disabled_at.is_(None))
)
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

# What somebody has in them: repository, role, whether by the organisation, the role that was given beside.
_OURS = select(repo.c.id).where(repo.c.owner_id == _ORG)
_MINE = and_(collaborator.c.account_id == _WHO, collaborator.c.repo_id.in_(_OURS))
_SOURCE = and_(through.c.repo_id == collaborator.c.repo_id, through.c.account_id == collaborator.c.account_id)
ROLES = (
    select(collaborator.c.repo_id, collaborator.c.role, through.c.org_id, through.c.given)
    .select_from(collaborator.outerjoin(through, _SOURCE))
    .where(_MINE)
)


def _rise(*pairs: Any) -> tuple[Any, Any, Any]:
    """Admins in repositories, which `pairs` selects from `member` and `repo`, get the role owner there: what
    was given to them is put aside, then their rows are changed, or made."""
    joined = member.join(repo, repo.c.owner_id == member.c.org_id)
    has, by = collaborator.alias("has"), through.alias("by")
    of_pair = and_(has.c.repo_id == repo.c.id, has.c.account_id == member.c.account_id)
    known = and_(by.c.repo_id == repo.c.id, by.c.account_id == member.c.account_id)
    admins = and_(member.c.role == "admin", *pairs)
    aside = insert(through).from_select(
        ["repo_id", "account_id", "org_id", "given"],
        select(repo.c.id, member.c.account_id, member.c.org_id, has.c.role)
        .select_from(joined.outerjoin(has, of_pair))
        .where(admins, ~select(by.c.repo_id).where(known).correlate(repo, member).exists()),
    )
    which = (
        select(member.c.org_id)
        .select_from(joined)
        .where(repo.c.id == collaborator.c.repo_id, member.c.account_id == collaborator.c.account_id, admins)
    )
    change = update(collaborator).where(which.correlate(collaborator).exists()).values(role=OWNER)
    make = insert(collaborator).from_select(
        ["repo_id", "account_id", "role", "created_at"],
        select(repo.c.id, member.c.account_id, literal(OWNER, String), bindparam("now", type_=BigInteger))
        .select_from(joined)
        .where(admins, ~select(has.c.repo_id).where(of_pair).correlate(repo, member).exists()),
    )
    return aside, change, make


def _fall(which: Any) -> tuple[Any, Any, Any]:
    """Those that `which` selects from `through` have no role by an organisation any more: they keep what was
    given to them."""
    given = select(through.c.given).where(_SOURCE).correlate(collaborator).scalar_subquery()
    theirs = select(through.c.repo_id).where(_SOURCE, which).correlate(collaborator)
    change = (
        update(collaborator).where(theirs.where(through.c.given.is_not(None)).exists()).values(role=given)
    )
    drop = delete(collaborator).where(theirs.where(through.c.given.is_(None)).exists())
    return change, drop, delete(through).where(which)


# Each in this order. An account becomes an admin, or is none any more: in all repositories of an
# organisation. A repository comes to an organisation, or leaves it: for all its admins.
_OF_MEMBER = and_(through.c.org_id == _ORG, through.c.account_id == _WHO)
RAISE = _rise(member.c.org_id == _ORG, member.c.account_id == _WHO)
LOWER = _fall(_OF_MEMBER)
ENTER = _rise(repo.c.id == _REPO)
LEAVE = _fall(through.c.repo_id == _REPO)

# A member goes: nothing stays.
DROP = (
    delete(collaborator).where(_MINE),
    delete(through).where(_OF_MEMBER),
    update(invite)
    .where(invite.c.account_id == _WHO, invite.c.repo_id.in_(_OURS), invite.c.state == "pending")
    .values(state="cancelled"),
    delete(access_request).where(
        access_request.c.account_id == _WHO,
        access_request.c.repo_id.in_(_OURS),
        access_request.c.state == "pending",
    ),
)

# Roles that differ from what the memberships say: (repository, account).
_ADMIN = (
    select(member.c.account_id)
    .where(
        member.c.org_id == repo.c.owner_id,
        member.c.account_id == collaborator.c.account_id,
        member.c.role == "admin",
    )
    .correlate(repo, collaborator)
    .exists()
)
STRAY = (
    select(collaborator.c.repo_id, collaborator.c.account_id)
    .select_from(collaborator.join(repo, repo.c.id == collaborator.c.repo_id).outerjoin(through, _SOURCE))
    .where(
        or_(
            and_(collaborator.c.role == OWNER, or_(through.c.org_id.is_(None), ~_ADMIN)),
            and_(through.c.org_id.is_not(None), collaborator.c.role != OWNER),
            and_(through.c.org_id.is_not(None), through.c.org_id != repo.c.owner_id),
        )
    )
)
MISSING = (
    select(repo.c.id, member.c.account_id)
    .select_from(
        member.join(repo, repo.c.owner_id == member.c.org_id).outerjoin(
            collaborator,
            and_(
                collaborator.c.repo_id == repo.c.id,
                collaborator.c.account_id == member.c.account_id,
                collaborator.c.role == OWNER,
            ),
        )
    )
    .where(member.c.role == "admin", collaborator.c.repo_id.is_(None))
)

CANCEL_TRANSFERS_TO = (
    update(transfer)
    .where(transfer.c.account_id == _ORG, transfer.c.state == "pending")
    .values(state="cancelled")
)
DISBAND = (
    update(account).where(account.c.id == _ORG, account.c.kind == "org").values(handle=None, disabled_at=_NOW)
)
