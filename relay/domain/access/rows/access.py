"""SQL statements on collaborators, invitations, requests for access and transfers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sqlalchemy import Select, and_, bindparam, delete, func, insert, or_, select, update

from relay.db.engine.database import Row
from relay.db.engine.keyset import Keyset
from relay.db.repo import ALIVE
from relay.db.schema.account import account
from relay.db.schema.collaboration.access import access_request, invite, transfer
from relay.db.schema.collaboration.organisation import member, through
from relay.db.schema.repo import collaborator, repo
from relay.domain.access.rows.offer import OfferRow, select_offers


@dataclass(slots=True, frozen=True)
class CollaboratorRow:
    """An account with a role in a repository. `org_handle`: the handle of the organisation through which it
    has the role, if it has it so. `given`: the lower role that it was given besides, if any."""

    account_id: str
    handle: str | None
    kind: str
    role: Any
    created_at: int
    org_handle: str | None
    given: str | None

    @property
    def has_base_role_only(self) -> bool:
        """Whether the account has its role only because every member of the organisation has it."""
        return self.role != "owner" and self.org_handle is not None and self.given is None


@dataclass(slots=True, frozen=True)
class RepoOfferRow(OfferRow):
    """An offer about a repository: a transfer, or with its role an invitation. `owner_id` and `owner_handle`:
    the account that owns the repository now."""

    repo_id: str
    owner_handle: str
    name: str
    owner_id: str


@dataclass(slots=True, frozen=True)
class InviteRow(RepoOfferRow):
    role: Any


@dataclass(slots=True, frozen=True)
class RequestRow:
    id: str
    account_id: str
    handle: str | None
    kind: str
    role: Any
    note: str
    state: Any
    created_at: int
    repo_id: str


_REPO: Any = bindparam("of_repo")
_WHO: Any = bindparam("who")
_NOW: Any = bindparam("now")

_IS = and_(collaborator.c.repo_id == _REPO, collaborator.c.account_id == _WHO)
_BY_ORG = account.alias("by_org")
_SOURCE = and_(through.c.repo_id == collaborator.c.repo_id, through.c.account_id == collaborator.c.account_id)
_PEOPLE = (
    select(
        account.c.id,
        account.c.handle,
        account.c.kind,
        collaborator.c.role,
        collaborator.c.created_at,
        _BY_ORG.c.handle.label("through"),
        through.c.given,
    )
    .select_from(
        collaborator.join(account, account.c.id == collaborator.c.account_id)
        .outerjoin(through, _SOURCE)
        .outerjoin(_BY_ORG, _BY_ORG.c.id == through.c.org_id)
    )
    .where(collaborator.c.repo_id == _REPO)
)
COLLABORATORS = Keyset(_PEOPLE, "id")
COLLABORATOR = _PEOPLE.where(collaborator.c.account_id == _WHO)
COUNT = (
    select(func.count())
    .select_from(collaborator.outerjoin(through, _SOURCE))
    .where(
        collaborator.c.repo_id == _REPO,
        collaborator.c.role != "owner",
        or_(through.c.org_id.is_(None), through.c.given.is_not(None)),
    )
)
ADD = insert(collaborator)
SET_ROLE = update(collaborator).where(_IS).values(role=bindparam("new_role"))
REMOVE = delete(collaborator).where(_IS)


def _select_offers(table: Any, sender: str, *more: Any) -> Select[Any]:
    """A SELECT of the offers about repositories in `table`: the columns of `RepoOfferRow`, then the columns
    `more`. `sender`: the column with the id of the sender."""
    owner = account.alias("owner")
    about = table.join(repo, repo.c.id == table.c.repo_id).join(owner, owner.c.id == repo.c.owner_id)
    columns = (repo.c.id.label("its_repo"), owner.c.handle.label("owner"), repo.c.name, repo.c.owner_id)
    return select_offers(table, sender, about, *columns, *more).where(ALIVE)


# Invitations.
_INVITES = _select_offers(invite, "inviter_id", invite.c.role)
_OPEN = and_(invite.c.state == "pending", invite.c.valid_until > _NOW)
INVITE = _INVITES.where(invite.c.id == bindparam("id"))
INVITES = Keyset(_INVITES.where(invite.c.repo_id == _REPO, _OPEN), "-id")
MY_INVITES = Keyset(_INVITES.where(invite.c.account_id == _WHO, _OPEN), "-id")
OPEN_INVITE = _INVITES.where(invite.c.repo_id == _REPO, invite.c.account_id == _WHO, _OPEN)
OPEN_INVITES = select(func.count()).select_from(invite).where(invite.c.repo_id == _REPO, _OPEN)
INVITED_SINCE = (
    select(func.count())
    .select_from(invite)
    .where(invite.c.inviter_id == _WHO, invite.c.created_at > bindparam("since"))
)
ADD_INVITE = insert(invite)
END_INVITE = (
    update(invite)
    .where(invite.c.id == bindparam("of_id"), invite.c.state == "pending")
    .values(state=bindparam("new_state"))
)
SET_INVITED_ROLE = update(invite).where(invite.c.id == bindparam("of_id")).values(role=bindparam("new_role"))
# Open invitations of this account that are past their end, or all of them.
EXPIRE_INVITE = (
    update(invite)
    .where(
        invite.c.repo_id == _REPO,
        invite.c.account_id == _WHO,
        invite.c.state == "pending",
        invite.c.valid_until <= _NOW,
    )
    .values(state="expired")
)
CANCEL_INVITE_OF = (
    update(invite)
    .where(invite.c.repo_id == _REPO, invite.c.account_id == _WHO, invite.c.state == "pending")
    .values(state="cancelled")
)

# Requests.
_REQUESTS = (
    select(
        access_request.c.id,
        account.c.id.label("whom"),
        account.c.handle,
        account.c.kind,
        access_request.c.role,
        access_request.c.note,
        access_request.c.state,
        access_request.c.created_at,
        access_request.c.repo_id,
    )
    .select_from(
        access_request.join(account, account.c.id == access_request.c.account_id).join(
            repo, repo.c.id == access_request.c.repo_id
        )
    )
    .where(ALIVE)
)
REQUEST = _REQUESTS.where(access_request.c.id == bindparam("id"))
REQUESTS = Keyset(
    _REQUESTS.where(access_request.c.repo_id == _REPO, access_request.c.state == "pending"), "-id"
)
OPEN_REQUESTS = (
    select(func.count())
    .select_from(access_request)
    .where(access_request.c.repo_id == _REPO, access_request.c.state == "pending")
)
ADD_REQUEST = insert(access_request)
DROP_REQUEST = delete(access_request).where(
    access_request.c.repo_id == _REPO,
    access_request.c.account_id == _WHO,
    access_request.c.state == "pending",
)
END_REQUEST = (
    update(access_request)
    .where(access_request.c.id == bindparam("of_id"), access_request.c.state == "pending")
    .values(state=bindparam("new_state"))
)

# Transfers.
_TRANSFERS = _select_offers(transfer, "sender_id")
_WAITS = and_(transfer.c.state == "pending", transfer.c.valid_until > _NOW)
_MY_ORGS = select(member.c.org_id).where(member.c.account_id == _WHO, member.c.role == "admin")
TRANSFER = _TRANSFERS.where(transfer.c.id == bindparam("id"))
MY_TRANSFERS = Keyset(
    _TRANSFERS.where(
        or_(
            transfer.c.account_id == _WHO,
            transfer.c.sender_id == _WHO,
            transfer.c.account_id.in_(_MY_ORGS),
            repo.c.owner_id.in_(_MY_ORGS),
        ),
        _WAITS,
    ),
    "-id",
)
ADD_TRANSFER = insert(transfer)
EXPIRE_TRANSFER = (
    update(transfer)
    .where(transfer.c.repo_id == _REPO, transfer.c.state == "pending", transfer.c.valid_until <= _NOW)
    .values(state="expired")
)
END_TRANSFER = (
    update(transfer)
    .where(transfer.c.id == bindparam("of_id"), transfer.c.state == "pending")
    .values(state=bindparam("new_state"))
)
SET_OWNER = update(repo).where(repo.c.id == _REPO).values(owner_id=bindparam("new_owner"), updated_at=_NOW)


def to_collaborator(values: Row) -> CollaboratorRow:
    return CollaboratorRow(*values)


def to_invite(values: Row) -> InviteRow:
    return InviteRow(*values)


def to_request(values: Row) -> RequestRow:
    return RequestRow(*values)


def to_transfer(values: Row) -> RepoOfferRow:
    return RepoOfferRow(*values)
