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
from relay.domain.access import through
from relay.domain.access.access import OFFER_MS, account_of, require_pending
from relay.domain.access.organisation import admin_again, admin_of, member_of, require_few
from relay.domain.access.rows import organisation as rows
from relay.domain.identity import audit


async def page(caller: Caller, org: str, query: PageQuery) -> Page[Member]:
    """Members of an organisation, for members

    Ordered by the creation time of their accounts.
    """
    async with caller.read() as tx:
        org_id = (await member_of(tx, caller, org))[0]
        return await paging.read_page(tx, rows.MEMBERS, query, _to_wire, of_org=org_id)


async def invites(caller: Caller, org: str, query: PageQuery) -> Page[MemberInvite]:
    """Open invitations to an organisation, for its admins"""
    async with caller.read() as tx:
        org_id = (await admin_of(tx, caller, org))[0]
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
        org_id = (await admin_of(tx, caller, org))[0]
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
        return await _read_invite(tx, invite_id)


async def accept(caller: Caller, invite: str) -> MemberInvite:
    """Accept an invitation: the membership begins

    Raises NotFound for an invitation of somebody else.
    """
    org_id = await _org_of(caller, invite)

    async def act(tx: Tx) -> MemberInvite:
        row = await _find_my_invite(tx, caller, invite)
        me, role = caller.me.account_id, row[9]
        await tx.run(rows.END_INVITE, of_id=invite, new_state="accepted")
        if await tx.one(rows.MEMBER, of_org=org_id, who=me) is not None:
            raise AlreadyMember(f"you are a member of {row[2]} already")
        await tx.run(rows.ADD, org_id=org_id, account_id=me, role=role, created_at=now_ms())
        if role == "admin":
            await _require_room_for_admin(tx, org_id, me)
        await through.grant_roles(tx, org_id, me)
        await _record(tx, caller, "member.join", org_id, me, role=role)
        return await _read_invite(tx, invite)

    return await through.write_all(caller, org_id, act)


async def decline(caller: Caller, invite: str) -> MemberInvite:
    """Decline an invitation to an organisation"""
    org_id = await _org_of(caller, invite)
    async with caller.write(account_name(org_id)) as tx:
        await _find_my_invite(tx, caller, invite)
        await tx.run(rows.DECLINE_INVITE, of_id=invite, now=now_ms())
        await _record(tx, caller, "member.decline", org_id, caller.me.account_id)
        return await _read_invite(tx, invite)


async def set_role(caller: Caller, org: str, handle: str, body: MemberChange) -> Member:
    """Change a member's role, or the role of an open invitation

    Raises LastAdmin.
    """
    async with caller.read() as tx:
        org_id = (await admin_of(tx, caller, org))[0]

    async def act(tx: Tx) -> Member:
        await admin_again(tx, caller, org_id, org)
        who, membership, invited = await _find_member(tx, caller, org_id, handle)
        if invited is not None:
            await tx.run(rows.SET_INVITED_ROLE, of_id=invited[0], new_role=body.role)
            await _record(tx, caller, "member.change", org_id, who, role=body.role)
            account = to_actor(*invited[3:6])
            return Member(account=account, role=body.role, created_at=rfc3339(invited[11]), state="pending")
        if membership is not None and membership[3] != body.role:
            await tx.run(rows.SET_ROLE, of_org=org_id, who=who, new_role=body.role)
            if body.role == "admin":
                await _require_room_for_admin(tx, org_id, who)
                await through.grant_roles(tx, org_id, who)
            else:
                await _require_an_admin(tx, org_id, org)
                await through.withdraw_admin_roles(tx, org_id, who)
        await _record(tx, caller, "member.change", org_id, who, role=body.role)
        changed = await tx.one(rows.MEMBER, of_org=org_id, who=who)
        if changed is None:
            raise NotFound
        return _to_wire(changed)

    return await through.write_all(caller, org_id, act)


async def remove(caller: Caller, org: str, handle: str) -> None:
    """Remove a member or an invitation; anybody may leave except the last admin

    The member loses every role in the organisation's repositories at once. Raises LastAdmin.
    """
    async with caller.read() as tx:
        org_id = (await member_of(tx, caller, org))[0]

    async def act(tx: Tx) -> None:
        if (await member_of(tx, caller, org))[0] != org_id:
            raise NotFound
        if not _is_me(caller, handle):
            await admin_again(tx, caller, org_id, org)
        who, _, invited = await _find_member(tx, caller, org_id, handle)
        if invited is not None:
            await tx.run(rows.END_INVITE, of_id=invited[0], new_state="cancelled")
            await _record(tx, caller, "member.cancel", org_id, who)
            return
        await tx.run(rows.REMOVE, of_org=org_id, who=who)
        await _require_an_admin(tx, org_id, org)
        await through.remove_all_roles(tx, org_id, who)
        await _record(tx, caller, "member.remove", org_id, who)

    await through.write_all(caller, org_id, act)


def _is_me(caller: Caller, handle: str) -> bool:
    return handle.removeprefix("@").lower() in ("me", caller.me.handle)


async def _find_member(
    tx: Tx, caller: Caller, org_id: str, handle: str
) -> tuple[str, Row | None, Row | None]:
    """Find a member or an invited account of the organisation by its handle. Returns (account id, row of its
    membership, row of its open invitation), where one of the two rows is None. Raises NotFound if the account
    is neither a member nor invited."""
    if _is_me(caller, handle):
        who = caller.me.account_id
    else:
        who, _ = await account_of(tx, handle, "/handle")
    membership = await tx.one(rows.MEMBER, of_org=org_id, who=who)
    invited = None
    if membership is None:
        invited = await tx.one(rows.OPEN_INVITE, of_org=org_id, who=who, now=now_ms())
        if invited is None:
            raise NotFound
    return who, membership, invited


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


async def _org_of(caller: Caller, invite: str) -> str:
    row = await caller.node.db.lookup(rows.INVITE, id=invite, now=now_ms())
    if row is None or row[3] != caller.me.account_id:
        raise NotFound
    return str(row[1])


async def _find_my_invite(tx: Tx, caller: Caller, invite: str) -> Row:
    """The row of an open invitation of the caller. Raises NotFound, AlreadyDecided or InviteExpired."""
    row = await tx.one(rows.INVITE, id=invite, now=now_ms())
    if row is None or row[3] != caller.me.account_id:
        raise NotFound
    require_pending(row[10], "invitation")
    return row


async def _record(tx: Tx, caller: Caller, kind: str, org_id: str, who: str, role: str | None = None) -> None:
    data = {} if role is None else {"role": role}
    await audit.record(tx, caller.me.account_id, kind, who, account_id=org_id, **data)


async def _read_invite(tx: Tx, invite: str) -> MemberInvite:
    row = await tx.one(rows.INVITE, id=invite, now=now_ms())
    if row is None:
        raise NotFound
    return _invite_to_wire(row)


def _invite_to_wire(row: Row) -> MemberInvite:
    return MemberInvite(
        id=row[0],
        organisation=OrganisationName(id=row[1], handle=row[2]),
        account=to_actor(*row[3:6]),
        inviter=to_actor(*row[6:9]),
        role=row[9],
        state=row[10],
        created_at=rfc3339(row[11]),
        expires_at=rfc3339(row[12]),
    )


def _to_wire(row: Row) -> Member:
    id, handle, kind, role, created = row
    return Member(account=to_actor(id, handle, kind), role=role, created_at=rfc3339(created))
