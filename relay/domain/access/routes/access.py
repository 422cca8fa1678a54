"""Collaborators, invitations, requests for access and transfers."""

from __future__ import annotations

from localstore.core.model.base import Page, PageQuery
from localstore.core.model.collaboration import access as endpoints
from localstore.core.model.collaboration.access import (
    AccessGrant,
    AccessRequest,
    AccessRequestCreate,
    AccessRequested,
    Collaborator,
    Invite,
    InviteCreate,
    RoleChange,
    Transfer,
    TransferCreate,
)
from relay.caller import Caller, View
from relay.domain.access import collaborator
from relay.domain.access import invite as invites
from relay.domain.access import request as requests
from relay.domain.access import transfer as transfers
from relay.http.routing import Reply, serves

FLAG = "TR_REPOS_ENABLED"


@serves(endpoints.COLLABORATORS, operation="collaborator.list", flag=FLAG)
async def list_collaborators(view: View, query: PageQuery) -> Page[Collaborator]:
    """Collaborators and their roles, without the owner"""
    return await collaborator.page(view, query)


@serves(endpoints.SET_ROLE, operation="collaborator.role", flag=FLAG, errors=(409,))
async def set_role(view: View, handle: str, body: RoleChange) -> Collaborator:
    """Change a collaborator's role, or the role of an open invitation"""
    return await collaborator.set_role(view, handle, body)


@serves(endpoints.REMOVE, operation="collaborator.remove", flag=FLAG, errors=(409,))
async def remove_collaborator(view: View, handle: str) -> Reply:
    """Remove a collaborator or an invitation; anybody may remove themselves"""
    await collaborator.remove(view, handle)
    return Reply(status=204)


@serves(endpoints.INVITES, operation="invite.list", flag=FLAG)
async def list_invites(view: View, query: PageQuery) -> Page[Invite]:
    """Open invitations of a repository"""
    return await invites.page(view, query)


@serves(endpoints.INVITE, operation="invite.create", flag=FLAG, errors=(409,))
async def create_invite(view: View, body: InviteCreate) -> Invite:
    """Invite an account to a role"""
    return await invites.create(view, body)


@serves(endpoints.CANCEL_INVITE, operation="invite.cancel", flag=FLAG, errors=(409, 410))
async def cancel_invite(view: View, invite: str) -> Invite:
    """Cancel an invitation"""
    return await invites.cancel(view, invite)


@serves(endpoints.MY_INVITES, operation="invite.mine", flag=FLAG)
async def list_my_invites(caller: Caller, query: PageQuery) -> Page[Invite]:
    """Open invitations of the caller"""
    return await invites.mine(caller, query)


@serves(endpoints.ACCEPT_INVITE, operation="invite.accept", flag=FLAG, errors=(409, 410))
async def accept_invite(caller: Caller, invite: str) -> Invite:
    """Accept an invitation: the role begins"""
    return await invites.accept(caller, invite)


@serves(endpoints.DECLINE_INVITE, operation="invite.decline", flag=FLAG, errors=(409, 410))
async def decline_invite(caller: Caller, invite: str) -> Invite:
    """Decline an invitation"""
    return await invites.decline(caller, invite)


@serves(endpoints.REQUEST, operation="access.request", flag=FLAG, errors=(409,))
async def create_request(caller: Caller, body: AccessRequestCreate) -> AccessRequested:
    """Request a role in a repository; the answer is the same whether or not it exists"""
    return await requests.create(caller, body)


@serves(endpoints.REQUESTS, operation="access.list", flag=FLAG)
async def list_requests(view: View, query: PageQuery) -> Page[AccessRequest]:
    """Open requests for access"""
    return await requests.page(view, query)


@serves(endpoints.GRANT, operation="access.grant", flag=FLAG, errors=(409,))
async def grant_request(caller: Caller, request_id: str, body: AccessGrant) -> AccessRequest:
    """Grant a request: the role begins"""
    return await requests.grant(caller, request_id, body)


@serves(endpoints.DECLINE_REQUEST, operation="access.decline", flag=FLAG, errors=(409,))
async def decline_request(caller: Caller, request_id: str) -> AccessRequest:
    """Decline a request"""
    return await requests.decline(caller, request_id)


@serves(endpoints.TRANSFER, operation="transfer.create", flag=FLAG, errors=(409,))
async def create_transfer(view: View, body: TransferCreate) -> Transfer:
    """Offer the repository to another owner"""
    return await transfers.create(view, body)


@serves(endpoints.TRANSFERS, operation="transfer.list", flag=FLAG)
async def list_transfers(caller: Caller, query: PageQuery) -> Page[Transfer]:
    """Open transfers that the caller sent or may accept"""
    return await transfers.page(caller, query)


@serves(endpoints.ACCEPT_TRANSFER, operation="transfer.accept", flag=FLAG, errors=(409, 410))
async def accept_transfer(caller: Caller, transfer: str) -> Transfer:
    """Accept a transfer: the caller becomes the owner"""
    return await transfers.accept(caller, transfer)


@serves(endpoints.DECLINE_TRANSFER, operation="transfer.decline", flag=FLAG, errors=(409, 410))
async def decline_transfer(caller: Caller, transfer: str) -> Transfer:
    """Decline a transfer"""
    return await transfers.decline(caller, transfer)


@serves(endpoints.CANCEL_TRANSFER, operation="transfer.cancel", flag=FLAG, errors=(409, 410))
async def cancel_transfer(caller: Caller, transfer: str) -> Transfer:
    """Cancel a transfer"""
    return await transfers.cancel(caller, transfer)
