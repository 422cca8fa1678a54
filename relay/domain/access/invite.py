"""Rules of invitations: rights begin when an invitation is accepted."""

from __future__ import annotations

from localstore.core.errors import NotFound, RateLimited
from localstore.core.model import limits
from localstore.core.model.access import (
    AlreadyCollaborator,
    Invite,
    InviteCreate,
    InvitePending,
)
from localstore.core.model.base import Page, PageQuery
from relay.base.clock import now_ms, rfc3339
from relay.base.ids import new_id
from relay.caller import Caller, View, account_name, repo_name
from relay.db import paging
from relay.db import repo as repos
from relay.db.engine.database import Row
from relay.domain.access.access import (
    account_of,
    add_collaborator,
    repo_name_of,
    require_room,
)
from relay.domain.access.offer import OFFER_MS, Offers
from relay.domain.access.rows import access as rows
from relay.domain.access.rows.access import InviteRow

DAY = 24 * 3600_000
_INVITES = Offers("invitation", rows.INVITE, rows.to_invite)


async def page(view: View, query: PageQuery) -> Page[Invite]:
    """Open invitations of a repository"""
    async with view.read() as tx:
        return await paging.read_page(tx, rows.INVITES, query, _to_wire, of_repo=view.repo.id, now=now_ms())


async def mine(caller: Caller, query: PageQuery) -> Page[Invite]:
    """Open invitations of the caller"""
    who = caller.me.account_id
    async with caller.read() as tx:
        return await paging.read_page(tx, rows.MY_INVITES, query, _to_wire, who=who, now=now_ms())


async def create(view: View, body: InviteCreate) -> Invite:
    """Invite an account to a role

    Raises AlreadyCollaborator, InvitePending, or RateLimited after too many invitations.
    """
    async with view.write(account_name(view.me.account_id)) as tx:
        now = now_ms()
        who, handle = await account_of(tx, body.handle, "/handle")
        repo_row = await tx.one(repos.ONE, id=view.repo.id, account=who)
        role = None if repo_row is None else repos.to_role(repo_row)
        if role == "owner":
            raise AlreadyCollaborator(
                f"@{handle} owns {view.repo.full_name} and may do everything there; "
                f"to see who else has a role: svc repo collaborator list -R {view.repo.full_name}"
            )
        if role is not None:
            raise AlreadyCollaborator(
                f"@{handle} has the role {role} already; to change it: "
                f"svc repo collaborator role {handle} ROLE"
            )
        await tx.run(rows.EXPIRE_INVITE, of_repo=view.repo.id, who=who, now=now)
        if await tx.one(rows.OPEN_INVITE, of_repo=view.repo.id, who=who, now=now) is not None:
            raise InvitePending(
                f"@{handle} is invited already; to change the role: svc repo collaborator role {handle} ROLE"
            )
        since = {"who": view.me.account_id, "since": now - DAY}
        limited = view.node.limiter.enabled
        if limited and await tx.value(rows.INVITED_SINCE, **since) >= limits.INVITES_A_DAY:
            raise RateLimited(
                f"{limits.INVITES_A_DAY} invitations within a day are enough; try again tomorrow",
                retry_after=3600,
                limit=limits.INVITES_A_DAY,
            )
        await require_room(tx, view.repo.id)
        invite_id = new_id()
        await tx.run(
            rows.ADD_INVITE,
            id=invite_id,
            repo_id=view.repo.id,
            account_id=who,
            inviter_id=view.me.account_id,
            role=body.role,
            state="pending",
            created_at=now,
            valid_until=now + OFFER_MS,
        )
        await view.node.hub.announce(
            tx, view.repo.id, "invite.create", audience="owner", invite=invite_id, account=who, role=body.role
        )
        return _row_to_wire(await _INVITES.find(tx.one, invite_id))


async def cancel(view: View, invite: str) -> Invite:
    """Cancel an invitation"""
    async with view.write() as tx:
        row = await _INVITES.find(tx.one, invite)
        if row.repo_id != view.repo.id:
            raise NotFound
        _INVITES.require_open(row)
        await tx.run(rows.END_INVITE, of_id=invite, new_state="cancelled")
        await view.node.hub.announce(
            tx, view.repo.id, "invite.cancel", audience="owner", invite=invite, account=row.account_id
        )
        return _row_to_wire(await _INVITES.find(tx.one, invite))


async def accept(caller: Caller, invite: str) -> Invite:
    """Accept an invitation: the role begins

    Raises NotFound for an invitation of somebody else.
    """
    me = caller.me.account_id
    repo_id = (await _INVITES.find(caller.node.db.lookup, invite, to=me)).repo_id
    async with caller.write(repo_name(repo_id)) as tx:
        row = await _INVITES.find_open(tx.one, invite, to=me)
        await tx.run(rows.END_INVITE, of_id=invite, new_state="accepted")
        await add_collaborator(tx, caller, repo_id, me, row.role)
        return _row_to_wire(await _INVITES.find(tx.one, invite))


async def decline(caller: Caller, invite: str) -> Invite:
    """Decline an invitation"""
    me = caller.me.account_id
    repo_id = (await _INVITES.find(caller.node.db.lookup, invite, to=me)).repo_id
    async with caller.write(repo_name(repo_id)) as tx:
        row = await _INVITES.find_open(tx.one, invite, to=me)
        await tx.run(rows.END_INVITE, of_id=invite, new_state="declined")
        await caller.node.hub.announce(
            tx,
            repo_id,
            "invite.decline",
            audience="owner",
            invite=invite,
            account=me,
            told=row.sender_id,
        )
        return _row_to_wire(await _INVITES.find(tx.one, invite))


def _to_wire(values: Row) -> Invite:
    return _row_to_wire(rows.to_invite(values))


def _row_to_wire(row: InviteRow) -> Invite:
    return Invite(
        id=row.id,
        repo=repo_name_of(row),
        account=row.account,
        inviter=row.sender,
        role=row.role,
        state=row.state,
        created_at=rfc3339(row.created_at),
        expires_at=rfc3339(row.valid_until),
    )
