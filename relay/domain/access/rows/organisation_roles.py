"""SQL statements on the roles that accounts have in repositories through organisations.

An admin has the role owner in all repositories of the organisation. A member has the base role of the
organisation, or the role given to that member in a repository if it is higher. The role that applies is a row
of `collaborator`. A row of the table `through` marks this role as coming from an organisation. It also keeps
the lower role that the account was given before, so that this role can be restored.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sqlalchemy import (
    BigInteger,
    String,
    and_,
    bindparam,
    case,
    delete,
    insert,
    literal,
    or_,
    select,
    update,
)

from localstore.core.model.rights import RANK
from relay.db.engine.database import Row
from relay.db.schema.collaboration.access import access_request, invite
from relay.db.schema.collaboration.organisation import base_role, member, through
from relay.db.schema.repo import collaborator, repo


@dataclass(slots=True, frozen=True)
class HeldRow:
    """A role that an account has in a repository through an organisation. `given`: the lower role that it was
    given besides, if any."""

    repo_id: str
    account_id: str
    role: str
    given: str | None


_ORG: Any = bindparam("of_org")
_WHO: Any = bindparam("who")
_REPO: Any = bindparam("of_repo")
OWNER = "owner"  # the role of an organisation's admins in its repositories


def _rank(column: Any) -> Any:
    return case(*((column == name, rank) for name, rank in RANK.items() if name is not None), else_=0)


# What somebody has in them: repository, role, whether by the organisation, the role that was given beside.
_OURS = select(repo.c.id).where(repo.c.owner_id == _ORG)
_MINE = and_(collaborator.c.account_id == _WHO, collaborator.c.repo_id.in_(_OURS))
_SOURCE = and_(through.c.repo_id == collaborator.c.repo_id, through.c.account_id == collaborator.c.account_id)
ROLES = (
    select(collaborator.c.repo_id, collaborator.c.role, through.c.org_id, through.c.given)
    .select_from(collaborator.outerjoin(through, _SOURCE))
    .where(_MINE)
)


def _raise_roles(*pairs: Any) -> tuple[Any, ...]:
    """SQL statements that give members of organisations their roles in repositories. `pairs`: conditions that
    select a member (a row of `member`) and a repository (a row of `repo`).

    An admin gets the role owner. Another member gets the base role if it is higher than the role given
    before. The statements first store the role given before in the table `through`, then update or insert the
    rows of `collaborator`.
    """
    joined = member.join(repo, repo.c.owner_id == member.c.org_id).outerjoin(
        base_role, base_role.c.org_id == member.c.org_id
    )
    has, by = collaborator.alias("has"), through.alias("by")
    of_pair = and_(has.c.repo_id == repo.c.id, has.c.account_id == member.c.account_id)
    has_source = and_(by.c.repo_id == repo.c.id, by.c.account_id == member.c.account_id)
    theirs = case((member.c.role == "admin", literal(OWNER, String)), else_=base_role.c.role)
    gets = and_(or_(member.c.role == "admin", base_role.c.role.is_not(None)), *pairs)
    set_aside = insert(through).from_select(
        ["repo_id", "account_id", "org_id", "given"],
        select(repo.c.id, member.c.account_id, member.c.org_id, has.c.role)
        .select_from(joined.outerjoin(has, of_pair))
        .where(
            gets,
            or_(has.c.role.is_(None), _rank(has.c.role) < _rank(theirs)),
            ~select(by.c.repo_id).where(has_source).correlate(repo, member).exists(),
        ),
    )
    which = (
        select(theirs)
        .select_from(joined.join(by, has_source))
        .where(repo.c.id == collaborator.c.repo_id, member.c.account_id == collaborator.c.account_id, gets)
        .correlate(collaborator)
    )
    change = update(collaborator).where(which.exists()).values(role=which.scalar_subquery())
    make = insert(collaborator).from_select(
        ["repo_id", "account_id", "role", "created_at"],
        select(repo.c.id, member.c.account_id, theirs, bindparam("now", type_=BigInteger))
        .select_from(joined)
        .where(gets, ~select(has.c.repo_id).where(of_pair).correlate(repo, member).exists()),
    )
    return set_aside, change, make


def _lower_roles(which: Any) -> tuple[Any, Any, Any]:
    """SQL statements that take away roles through an organisation. An account that was given a lower role
    itself gets this role back. `which`: a condition that selects rows of the table `through`."""
    given = select(through.c.given).where(_SOURCE).correlate(collaborator).scalar_subquery()
    theirs = select(through.c.repo_id).where(_SOURCE, which).correlate(collaborator)
    change = (
        update(collaborator).where(theirs.where(through.c.given.is_not(None)).exists()).values(role=given)
    )
    drop = delete(collaborator).where(theirs.where(through.c.given.is_(None)).exists())
    return change, drop, delete(through).where(which)


# Each in this order. What an account has by an organisation rises, or falls to what was given: in all its
# repositories. A repository comes to an organisation, or leaves it: for all its members. The base role of an
# organisation changes: for all its members, in all its repositories.
_OF_MEMBER = and_(through.c.org_id == _ORG, through.c.account_id == _WHO)
RAISE = _raise_roles(member.c.org_id == _ORG, member.c.account_id == _WHO)
LOWER = _lower_roles(_OF_MEMBER)
RAISE_ALL = _raise_roles(member.c.org_id == _ORG)
LOWER_ALL = _lower_roles(through.c.org_id == _ORG)
ENTER = _raise_roles(repo.c.id == _REPO)
LEAVE = _lower_roles(through.c.repo_id == _REPO)

# What everybody has in them through the organisation.
HELD = (
    select(collaborator.c.repo_id, collaborator.c.account_id, collaborator.c.role, through.c.given)
    .select_from(collaborator.join(through, _SOURCE))
    .where(through.c.org_id == _ORG)
)
# A role that is given to a member, or taken away: what it has by the organisation is worked out again.
NOT_BY_ORG = delete(through).where(through.c.repo_id == _REPO, through.c.account_id == _WHO)
LIFT = _raise_roles(repo.c.id == _REPO, member.c.account_id == _WHO)

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
_BY = (
    select(case((member.c.role == "admin", literal(OWNER, String)), else_=base_role.c.role))
    .select_from(member.outerjoin(base_role, base_role.c.org_id == member.c.org_id))
    .where(member.c.org_id == repo.c.owner_id, member.c.account_id == collaborator.c.account_id)
    .correlate(repo, collaborator)
    .scalar_subquery()
)
STRAY = (
    select(collaborator.c.repo_id, collaborator.c.account_id)
    .select_from(collaborator.join(repo, repo.c.id == collaborator.c.repo_id).outerjoin(through, _SOURCE))
    .where(
        or_(
            and_(collaborator.c.role == OWNER, through.c.org_id.is_(None)),
            and_(through.c.org_id.is_not(None), or_(_BY.is_(None), collaborator.c.role != _BY)),
            and_(through.c.org_id.is_not(None), through.c.org_id != repo.c.owner_id),
        )
    )
)
MISSING = (
    select(repo.c.id, member.c.account_id)
    .select_from(
        member.join(repo, repo.c.owner_id == member.c.org_id)
        .outerjoin(base_role, base_role.c.org_id == member.c.org_id)
        .outerjoin(
            collaborator,
            and_(
                collaborator.c.repo_id == repo.c.id,
                collaborator.c.account_id == member.c.account_id,
            ),
        )
    )
    .where(
        _rank(case((member.c.role == "admin", literal(OWNER, String)), else_=base_role.c.role))
        > _rank(collaborator.c.role)
    )
)


def to_held(values: Row) -> HeldRow:
    return HeldRow(*values)
