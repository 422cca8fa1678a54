"""Organisations, their members, and invitations to them."""

from __future__ import annotations

from localstore.core.model.base import Page, PageQuery
from localstore.core.model.collaboration import organisation as endpoints
from localstore.core.model.collaboration.organisation import (
    Member,
    MemberChange,
    MemberInvite,
    MemberInviteCreate,
)
from relay.caller import Caller
from relay.domain.access import member as members
from relay.domain.access import organisation as organisations
from relay.http.routing import Reply, serves

FLAG = "TR_REPOS_ENABLED"

serves(endpoints.LIST, operation="organisation.list", flag=FLAG)(organisations.page)
serves(endpoints.CREATE, operation="organisation.create", flag=FLAG, errors=(409,))(organisations.create)
serves(endpoints.GET, operation="organisation.get", flag=FLAG)(organisations.get)
serves(endpoints.UPDATE, operation="organisation.update", flag=FLAG, errors=(409,))(organisations.update)


@serves(endpoints.DELETE, operation="organisation.delete", flag=FLAG, errors=(409,))
async def delete_organisation(caller: Caller, org: str) -> Reply:
    """Delete an organisation that owns nothing"""
    await organisations.delete(caller, org)
    return Reply(status=204)


@serves(endpoints.MEMBERS, operation="member.list", flag=FLAG)
async def list_members(caller: Caller, org: str, query: PageQuery) -> Page[Member]:
    """Members of an organisation, for members"""
    return await members.page(caller, org, query)


@serves(endpoints.INVITES, operation="member.invites", flag=FLAG)
async def list_member_invites(caller: Caller, org: str, query: PageQuery) -> Page[MemberInvite]:
    """Open invitations to an organisation, for its admins"""
    return await members.invites(caller, org, query)


@serves(endpoints.INVITE, operation="member.invite", flag=FLAG, errors=(409,))
async def invite_member(caller: Caller, org: str, body: MemberInviteCreate) -> MemberInvite:
    """Invite an account to an organisation"""
    return await members.invite(caller, org, body)


@serves(endpoints.SET_ROLE, operation="member.role", flag=FLAG, errors=(409,))
async def set_member_role(caller: Caller, org: str, handle: str, body: MemberChange) -> Member:
    """Change a member's role, or the role of an open invitation"""
    return await members.set_role(caller, org, handle, body)


@serves(endpoints.REMOVE, operation="member.remove", flag=FLAG, errors=(409,))
async def remove_member(caller: Caller, org: str, handle: str) -> Reply:
    """Remove a member or an invitation; anybody may leave except the last admin"""
    await members.remove(caller, org, handle)
    return Reply(status=204)


@serves(endpoints.MY_INVITES, operation="member.mine", flag=FLAG)
async def list_my_member_invites(caller: Caller, query: PageQuery) -> Page[MemberInvite]:
    """Open invitations of the caller to organisations"""
    return await members.my_invites(caller, query)


@serves(endpoints.ACCEPT, operation="member.accept", flag=FLAG, errors=(409, 410))
async def accept_member_invite(caller: Caller, invite: str) -> MemberInvite:
    """Accept an invitation: the membership begins"""
    return await members.accept(caller, invite)


@serves(endpoints.DECLINE, operation="member.decline", flag=FLAG, errors=(409, 410))
async def decline_member_invite(caller: Caller, invite: str) -> MemberInvite:
    """Decline an invitation to an organisation"""
    return await members.decline(caller, invite)
