"""Access to repositories: collaborators, invitations, requests for access, transfers."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

from localstore.core.endpoint import REPO, Endpoint
from localstore.core.errors import Conflict, Gone
from localstore.core.model.base import Actor, Model, Page, PageQuery, Sent
from localstore.core.model.limits import DESCRIPTION_CHARS, HANDLE_CHARS


class AlreadyCollaborator(Conflict):
    """The account has a role in the repository, or owns it."""

    code = "already_collaborator"


class InvitePending(Conflict):
    """The account has an open invitation to the repository."""

    code = "invite_pending"


class TransferPending(Conflict):
    """The repository already has an open transfer."""

    code = "transfer_pending"


class AlreadyDecided(Conflict):
    """The invitation, transfer or request was already decided."""

    code = "already_decided"


class InviteExpired(Gone):
    """The invitation or transfer was not answered within its seven days."""

    code = "invite_expired"


Granted = Literal["admin", "write", "triage", "read"]
Handle = Annotated[str, msgspec.Meta(min_length=1, max_length=HANDLE_CHARS, description="a handle")]
FullName = Annotated[
    str, msgspec.Meta(min_length=3, max_length=2 * HANDLE_CHARS + 1, description="OWNER/NAME")
]
OfferState = Literal["pending", "accepted", "declined", "cancelled", "expired"]


class RepoName(Model, frozen=True):
    id: str
    full_name: str


class Collaborator(Model, frozen=True):
    """An account with a role in a repository. `state` pending: the account is invited and has no rights until
    it accepts. `through`: the organisation from which the role comes. The admins of an organisation have
    the role owner."""

    account: Actor
    role: Granted | Literal["owner"]
    created_at: str
    state: Literal["active", "pending"] = "active"
    through: str | None = None


class Invite(Model, frozen=True):
    """An invitation of `account` by `inviter`."""

    id: str
    repo: RepoName
    account: Actor
    inviter: Actor
    role: Granted
    state: OfferState
    created_at: str
    expires_at: str


class InviteCreate(Sent, frozen=True):
    """A new invitation. `handle`: the person to invite."""

    handle: Handle
    role: Granted = "read"


class RoleChange(Sent, frozen=True):
    role: Granted


class AccessRequest(Model, frozen=True):
    """A request of `account` for a role in a repository. `note`: a message to the owner."""

    id: str
    account: Actor
    role: Granted
    note: str
    state: Literal["pending", "granted", "declined"]
    created_at: str


class AccessRequestCreate(Sent, frozen=True):
    """A request for access. `repo`: OWNER/NAME, whether or not the caller can see it."""

    repo: FullName
    role: Granted = "read"
    note: Annotated[str, msgspec.Meta(max_length=DESCRIPTION_CHARS, pattern=r"^[^\x00]*$")] = ""


class AccessRequested(Model, frozen=True):
    """The answer to a request for access. It is always the same, so that it does not reveal whether a private
    repository of this name exists."""


class AccessGrant(Sent, frozen=True):
    """The decision to grant a request for access. `role`: the role to give, by default the requested one."""

    role: Granted | None = None


class Transfer(Model, frozen=True):
    """An offer to give a repository to another owner. `sender`: who made the offer. `to`: who becomes the
    owner on acceptance. `org`: whether `to` is an organisation; its admins may accept."""

    id: str
    repo: RepoName
    sender: Actor
    to: Actor
    state: OfferState
    created_at: str
    expires_at: str
    org: bool = False


class TransferCreate(Sent, frozen=True):
    """A new offer of a repository to another owner. `org`: whether the handle belongs to an organisation."""

    to: Handle
    org: bool = False


_PERSON = f"{REPO}/collaborators/{{handle}}"
_INVITE, _REQUEST, _TRANSFER = "/api/v1/invites", "/api/v1/access-requests", "/api/v1/transfers"
COLLABORATORS = Endpoint("GET", f"{REPO}/collaborators", query=PageQuery, returns=Page[Collaborator])
SET_ROLE = Endpoint("PATCH", _PERSON, body=RoleChange, returns=Collaborator)
REMOVE: Endpoint[None] = Endpoint("DELETE", _PERSON, status=204)
INVITES = Endpoint("GET", f"{REPO}/invites", query=PageQuery, returns=Page[Invite])
INVITE = Endpoint("POST", f"{REPO}/invites", body=InviteCreate, returns=Invite, status=201)
CANCEL_INVITE = Endpoint("DELETE", f"{REPO}/invites/{{invite}}", returns=Invite)
MY_INVITES = Endpoint("GET", _INVITE, query=PageQuery, returns=Page[Invite])
ACCEPT_INVITE = Endpoint("POST", f"{_INVITE}/{{invite}}/accept", returns=Invite)
DECLINE_INVITE = Endpoint("POST", f"{_INVITE}/{{invite}}/decline", returns=Invite)
REQUEST = Endpoint("POST", _REQUEST, body=AccessRequestCreate, returns=AccessRequested, status=202)
REQUESTS = Endpoint("GET", f"{REPO}/access-requests", query=PageQuery, returns=Page[AccessRequest])
GRANT = Endpoint("POST", f"{_REQUEST}/{{request_id}}/grant", body=AccessGrant, returns=AccessRequest)
DECLINE_REQUEST = Endpoint("POST", f"{_REQUEST}/{{request_id}}/decline", returns=AccessRequest)
TRANSFER = Endpoint("POST", f"{REPO}/transfers", body=TransferCreate, returns=Transfer, status=201)
TRANSFERS = Endpoint("GET", _TRANSFER, query=PageQuery, returns=Page[Transfer])
ACCEPT_TRANSFER = Endpoint("POST", f"{_TRANSFER}/{{transfer}}/accept", returns=Transfer)
DECLINE_TRANSFER = Endpoint("POST", f"{_TRANSFER}/{{transfer}}/decline", returns=Transfer)
CANCEL_TRANSFER = Endpoint("DELETE", f"{_TRANSFER}/{{transfer}}", returns=Transfer)
