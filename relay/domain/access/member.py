"""Rules of members: they join by invitation, an admin changes their roles and removes them, and anybody may
leave except the last admin."""

from __future__ import annotations

from localstore.core.errors import Conflict, NotFound
from localstore.core.model import limits
from localstore.core.model.access import InvitePending
from localstore.core.model.base import Page, PageQuery
from localstore.core.model.organisation import (
    AlreadyMember,
    LastAdmin,
    Member,
    MemberChange,
    MemberInvite,
    MemberInviteCreate,
    OrganisationName,
)
from relay.base.actors import to_actor
from relay.base.clock import now_ms, rfc3339
from relay.base.ids import new_id
from relay.caller import Caller, account_name
from relay.db import paging
from relay.db.engine.database import Row, Tx
from relay.domain.access import organisation_roles
from relay.domain.access.access import account_of
from relay.domain.access.offer import OFFER_MS, Offers
from relay.domain.access.organisation import admin_again, admin_of, member_of, require_few
from relay.domain.access.rows import organisation as rows
from relay.domain.access.rows.organisation import MemberInviteRow, MemberRow
from relay.domain.identity import audit

_INVITES = Offers("invitation", rows.INVITE, rows.to_invite)


async def page(caller: Caller, org: str, query: PageQuery) -> Page[Member]:
    """Members of an organisation, for members

    Ordered by the creation time of their accounts.
    """
    async with caller.read() as tx:
        org_id = (await member_of(tx, caller, org)).id
        return await paging.read_page(tx, rows.MEMBERS, query, _to_wire, of_org=org_id)


async def invites(caller: Caller, org: str, query: PageQuery) -> Page[MemberInvite]:
    """Open invitations to an organisation, for its admins"""
    async with caller.read() as tx:
        org_id = (await admin_of(tx, caller, org)).id
        return await paging.read_page(tx, rows.INVITES, query, _invite_to_wire, of_org=org_id, now=now_ms())


async def my_invites(caller: Caller, query: PageQuery) -> Page[MemberInvite]:
    """Open invitations of the caller to organisations"""
    who = caller.me.account_id
    async with caller.read() as tx:
        return await paging.read_page(tx, rows.MY_INVITES, query, _invite_to_wire, who=who, now=now_ms())


async def invite(caller: Caller, org: str, body: MemberInviteCreate) -> MemberInvite:
    """Invite an account to an organisation

    Raises AlreadyMember, InvitePending.
    """
    async with caller.read() as tx:
        org_id = (await admin_of(tx, caller, org)).id
    async with caller.write(account_name(org_id)) as tx:
        await admin_again(tx, caller, org_id, org)
        now = now_ms()
        who, handle = await account_of(tx, body.handle, "/handle")
        about = {"of_org": org_id, "who": who}
        if await tx.one(rows.MEMBER, **about) is not None:
            raise AlreadyMember(f"@{handle} is a member of {org} already")
        await tx.run(rows.EXPIRE_INVITE, **about, now=now)
        if await tx.one(rows.OPEN_INVITE, **about, now=now) is not None:
            raise InvitePending(
                f"@{handle} is invited already; to change the role: svc org member role {org} {handle} ROLE"
            )
        used = await tx.value(rows.COUNT, of_org=org_id)
        used += await tx.value(rows.OPEN_INVITES, of_org=org_id, now=now)
        if used >= limits.MEMBERS:
            raise Conflict(f"an organisation has at most {limits.MEMBERS} members; remove one first")
        await caller.count_created(tx, "invitations")
        invite_id = new_id()
        await tx.run(
            rows.ADD_INVITE,
            id=invite_id,
            org_id=org_id,
            account_id=who,
            inviter_id=caller.me.account_id,
            role=body.role,
            state="pending",
            created_at=now,
            valid_until=now + OFFER_MS,
            unread=True,
            done=False,
            answered_at=None,
        )
        await _record(tx, caller, "member.invite", org_id, who, role=body.role)
        return _invite_row_to_wire(await _INVITES.find(tx.one, invite_id))


async def accept(caller: Caller, invite: str) -> MemberInvite:
    """Accept an invitation: the membership begins

    Raises NotFound for an invitation of somebody else.
    """
    me = caller.me.account_id
    org_id = (await _INVITES.find(caller.node.db.lookup, invite, to=me)).org_id

    async def act(tx: Tx) -> MemberInvite:
        row = await _INVITES.find_open(tx.one, invite, to=me)
        await tx.run(rows.END_INVITE, of_id=invite, new_state="accepted")
        if await tx.one(rows.MEMBER, of_org=org_id, who=me) is not None:
            raise AlreadyMember(f"you are a member of {row.org_handle} already")
        await tx.run(rows.ADD, org_id=org_id, account_id=me, role=row.role, created_at=now_ms())
        if row.role == "admin":
            await _require_room_for_admin(tx, org_id, me)
        await organisation_roles.grant_roles(tx, org_id, me)
        await _record(tx, caller, "member.join", org_id, me, role=row.role)
        return _invite_row_to_wire(await _INVITES.find(tx.one, invite))

    return await organisation_roles.write_all(caller, org_id, act)


async def decline(caller: Caller, invite: str) -> MemberInvite:
    """Decline an invitation to an organisation"""
    me = caller.me.account_id
    org_id = (await _INVITES.find(caller.node.db.lookup, invite, to=me)).org_id
    async with caller.write(account_name(org_id)) as tx:
        await _INVITES.find_open(tx.one, invite, to=me)
        await tx.run(rows.DECLINE_INVITE, of_id=invite, now=now_ms())
        await _record(tx, caller, "member.decline", org_id, me)
        return _invite_row_to_wire(await _INVITES.find(tx.one, invite))


async def set_role(caller: Caller, org: str, handle: str, body: MemberChange) -> Member:
    """Change a member's role, or the role of an open invitation

    Raises LastAdmin.
    """
    async with caller.read() as tx:
        org_id = (await admin_of(tx, caller, org)).id

    async def act(tx: Tx) -> Member:
        await admin_again(tx, caller, org_id, org)
        who, membership, invited = await _find_member(tx, caller, org_id, handle)
        if invited is not None:
            await tx.run(rows.SET_INVITED_ROLE, of_id=invited.id, new_role=body.role)
            await _record(tx, caller, "member.change", org_id, who, role=body.role)
            created = rfc3339(invited.created_at)
            return Member(account=invited.account, role=body.role, created_at=created, state="pending")
        if membership is not None and membership.role != body.role:
            await tx.run(rows.SET_ROLE, of_org=org_id, who=who, new_role=body.role)
            if body.role == "admin":
                await _require_room_for_admin(tx, org_id, who)
                await organisation_roles.grant_roles(tx, org_id, who)
            else:
                await _require_an_admin(tx, org_id, org)
                await organisation_roles.withdraw_admin_roles(tx, org_id, who)
        await _record(tx, caller, "member.change", org_id, who, role=body.role)
        changed = await tx.one(rows.MEMBER, of_org=org_id, who=who)
        if changed is None:
            raise NotFound
        return _to_wire(changed)

    return await organisation_roles.write_all(caller, org_id, act)


async def remove(caller: Caller, org: str, handle: str) -> None:
    """Remove a member or an invitation; anybody may leave except the last admin

    The member loses every role in the organisation's repositories at once. Raises LastAdmin.
    """
    async with caller.read() as tx:
        org_id = (await member_of(tx, caller, org)).id

    async def act(tx: Tx) -> None:
        if (await member_of(tx, caller, org)).id != org_id:
            raise NotFound
        if not _is_me(caller, handle):
            await admin_again(tx, caller, org_id, org)
        who, _, invited = await _find_member(tx, caller, org_id, handle)
        if invited is not None:
            await tx.run(rows.END_INVITE, of_id=invited.id, new_state="cancelled")
            await _record(tx, caller, "member.cancel", org_id, who)
            return
        await tx.run(rows.REMOVE, of_org=org_id, who=who)
        await _require_an_admin(tx, org_id, org)
        await organisation_roles.remove_all_roles(tx, org_id, who)
        await _record(tx, caller, "member.remove", org_id, who)

    await organisation_roles.write_all(caller, org_id, act)


def _is_me(caller: Caller, handle: str) -> bool:
    return handle.removeprefix("@").lower() in ("me", caller.me.handle)


async def _find_member(
    tx: Tx, caller: Caller, org_id: str, handle: str
) -> tuple[str, MemberRow | None, MemberInviteRow | None]:
    """Find a member or an invited account of the organisation by its handle. Returns (account id, its
    membership, its open invitation), where one of the last two is None. Raises NotFound if the account is
    neither a member nor invited."""
    if _is_me(caller, handle):
        who = caller.me.account_id
    else:
        who, _ = await account_of(tx, handle, "/handle")
    membership = await tx.one(rows.MEMBER, of_org=org_id, who=who)
    if membership is not None:
        return who, rows.to_member(membership), None
    invited = await tx.one(rows.OPEN_INVITE, of_org=org_id, who=who, now=now_ms())
    if invited is None:
        raise NotFound
    return who, None, rows.to_invite(invited)


async def _require_an_admin(tx: Tx, org_id: str, org: str) -> None:
    if not await tx.value(rows.ADMINS, of_org=org_id):
        raise LastAdmin(
            f"{org} would be left without an admin; make somebody else one first: svc org member role {org} "
            "HANDLE admin"
        )


async def _require_room_for_admin(tx: Tx, org_id: str, who: str) -> None:
    await require_few(tx, who, new=0)
    if await tx.value(rows.ADMINS, of_org=org_id) > limits.ORGANISATION_ADMINS:
        raise Conflict(f"an organisation has at most {limits.ORGANISATION_ADMINS} admins")


async def _record(tx: Tx, caller: Caller, kind: str, org_id: str, who: str, role: str | None = None) -> None:
    data = {} if role is None else {"role": role}
    await audit.record(tx, caller.me.account_id, kind, who, account_id=org_id, **data)


def _invite_to_wire(values: Row) -> MemberInvite:
    return _invite_row_to_wire(rows.to_invite(values))


def _invite_row_to_wire(row: MemberInviteRow) -> MemberInvite:
    return MemberInvite(
        id=row.id,
        organisation=OrganisationName(id=row.org_id, handle=row.org_handle),
        account=row.account,
        inviter=row.sender,
        role=row.role,
        state=row.state,
        created_at=rfc3339(row.created_at),
        expires_at=rfc3339(row.valid_until),
    )


def _to_wire(values: Row) -> Member:
    row = rows.to_member(values)
    account = to_actor(row.account_id, row.handle, row.kind)
    return Member(account=account, role=row.role, created_at=rfc3339(row.created_at))
