"""Routes of collaborators, invitations, requests for access, transfers, organisations and their members."""

from __future__ import annotations

from localstore.core.model import access, organisation
from relay.domain.access import collaborator
from relay.domain.access import invite as invites
from relay.domain.access import member as members
from relay.domain.access import organisation as organisations
from relay.domain.access import request as requests
from relay.domain.access import transfer as transfers
from relay.http.routing import REPOSITORIES, behind

serves_repositories = behind(REPOSITORIES)

serves_repositories(access.COLLABORATORS, operation="collaborator.list", name="access.list_collaborators")(
    collaborator.page
)
serves_repositories(access.SET_ROLE, operation="collaborator.role", name="access.set_role", errors=(409,))(
    collaborator.set_role
)
serves_repositories(
    access.REMOVE, operation="collaborator.remove", name="access.remove_collaborator", errors=(409,)
)(collaborator.remove)
serves_repositories(access.INVITES, operation="invite.list", name="access.list_invites")(invites.page)
serves_repositories(access.INVITE, operation="invite.create", name="access.create_invite", errors=(409,))(
    invites.create
)
serves_repositories(
    access.CANCEL_INVITE, operation="invite.cancel", name="access.cancel_invite", errors=(409, 410)
)(invites.cancel)
serves_repositories(access.MY_INVITES, operation="invite.mine", name="access.list_my_invites")(invites.mine)
serves_repositories(
    access.ACCEPT_INVITE,
    operation="invite.accept",
    name="access.accept_invite",
    errors=(409, 410),
)(invites.accept)
serves_repositories(
    access.DECLINE_INVITE,
    operation="invite.decline",
    name="access.decline_invite",
    errors=(409, 410),
)(invites.decline)
serves_repositories(access.REQUEST, operation="access.request", name="access.create_request", errors=(409,))(
    requests.create
)
serves_repositories(access.REQUESTS, operation="access.list", name="access.list_requests")(requests.page)
serves_repositories(access.GRANT, operation="access.grant", name="access.grant_request", errors=(409,))(
    requests.grant
)
serves_repositories(
    access.DECLINE_REQUEST, operation="access.decline", name="access.decline_request", errors=(409,)
)(requests.decline)
serves_repositories(
    access.TRANSFER, operation="transfer.create", name="access.create_transfer", errors=(409,)
)(transfers.create)
serves_repositories(access.TRANSFERS, operation="transfer.list", name="access.list_transfers")(transfers.page)
serves_repositories(
    access.ACCEPT_TRANSFER,
    operation="transfer.accept",
    name="access.accept_transfer",
    errors=(409, 410),
)(transfers.accept)
serves_repositories(
    access.DECLINE_TRANSFER,
    operation="transfer.decline",
    name="access.decline_transfer",
    errors=(409, 410),
)(transfers.decline)
serves_repositories(
    access.CANCEL_TRANSFER,
    operation="transfer.cancel",
    name="access.cancel_transfer",
    errors=(409, 410),
)(transfers.cancel)
serves_repositories(organisation.LIST, operation="organisation.list")(organisations.page)
serves_repositories(organisation.CREATE, operation="organisation.create", errors=(409,))(organisations.create)
serves_repositories(organisation.GET, operation="organisation.get")(organisations.get)
serves_repositories(organisation.UPDATE, operation="organisation.update", errors=(409,))(organisations.update)

serves_repositories(
    organisation.DELETE,
    operation="organisation.delete",
    name="organisation.delete_organisation",
    errors=(409,),
)(organisations.delete)
serves_repositories(organisation.MEMBERS, operation="member.list", name="organisation.list_members")(
    members.page
)
serves_repositories(
    organisation.INVITES,
    operation="member.invites",
    name="organisation.list_member_invites",
)(members.invites)
serves_repositories(
    organisation.INVITE,
    operation="member.invite",
    name="organisation.invite_member",
    errors=(409,),
)(members.invite)
serves_repositories(
    organisation.SET_ROLE,
    operation="member.role",
    name="organisation.set_member_role",
    errors=(409,),
)(members.set_role)
serves_repositories(
    organisation.REMOVE,
    operation="member.remove",
    name="organisation.remove_member",
    errors=(409,),
)(members.remove)
serves_repositories(
    organisation.MY_INVITES,
    operation="member.mine",
    name="organisation.list_my_member_invites",
)(members.my_invites)
serves_repositories(
    organisation.ACCEPT,
    operation="member.accept",
    name="organisation.accept_member_invite",
    errors=(409, 410),
)(members.accept)
serves_repositories(
    organisation.DECLINE,
    operation="member.decline",
    name="organisation.decline_member_invite",
    errors=(409, 410),
)(members.decline)
