"""SQL statements on collaborators, invitations, requests for access and transfers."""

from __future__ import annotations

from typing import Any

from sqlalchemy import and_, bindparam, case, delete, func, insert, or_, select, update

from relay.db.engine.keyset import Keyset
from relay.db.repo import ALIVE
from relay.db.schema.account import account
from relay.db.schema.collaboration.access import access_request, invite, transfer
from relay.db.schema.collaboration.organisation import member, through
from relay.db.schema.repo import collaborator, repo

_REPO: Any = bindparam("of_repo")
_WHO: Any = bindparam("who")
_NOW: Any = bindparam("now")

# Collaborators: account id, handle, kind, role, since, the handle of the organisation by which they have it,
# and what was given beside.
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


def _select_offers(table: Any, maker: str, *more: Any) -> Any:
    """A SELECT of the offers in `table`, which is the table of invitations or the table of transfers. Its
    columns: id, repository (id, owner, name), account (id, handle, kind), sender (id, handle, kind), state,
    creation time, end time, id of the owner, and the columns `more`. `maker`: the column with the id of the
    sender."""
    owner, whom, by = account.alias("owner"), account.alias("whom"), account.alias("by_whom")
    over = and_(table.c.state == "pending", table.c.valid_until <= _NOW)
    return (
        select(
            table.c.id,
            repo.c.id.label("its_repo"),
            owner.c.handle.label("owner"),
            repo.c.name,
            whom.c.id.label("whom"),
            whom.c.handle.label("whom_handle"),
            whom.c.kind.label("whom_kind"),
            by.c.id.label("maker"),
            by.c.handle.label("maker_handle"),
            by.c.kind.label("maker_kind"),
            case((over, "expired"), else_=table.c.state).label("state_now"),
            table.c.created_at,
            table.c.valid_until,
            repo.c.owner_id,
            *more,
        )
        .select_from(
            table.join(repo, repo.c.id == table.c.repo_id)
            .join(owner, owner.c.id == repo.c.owner_id)
            .join(whom, whom.c.id == table.c.account_id)
            .join(by, by.c.id == table.c[maker])
        )
        .where(ALIVE)
    )


# Invitations: an open one past its end counts as expired.
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

# Requests: id, account (id, handle, kind), role, note, state, created, repository.
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
