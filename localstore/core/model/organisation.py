"""Organisations: owners of repositories, with members. Admins have the rights of the owner in every
repository of the organisation; members have the roles given to them.
"""

from __future__ import annotations

from typing import Literal

from localstore.core.endpoint import Endpoint
from localstore.core.errors import Conflict
from localstore.core.model.access import Handle, OfferState
from localstore.core.model.base import Actor, Count, Model, Page, PageQuery, Sent
from localstore.core.model.base import RepoName as Name


class AlreadyMember(Conflict):
    """The account is a member of the organisation already."""

    code = "already_member"


class LastAdmin(Conflict):
    """The organisation would be left without an admin."""

    code = "last_admin"


class OrganisationOwns(Conflict):
    """The organisation still owns repositories."""

    code = "organisation_owns"


class ThroughOrganisation(Conflict):
    """The account has its role as a member of the organisation that owns the repository."""

    code = "through_organisation"


MemberRole = Literal["admin", "member"]
BaseRole = Literal["none", "read", "triage", "write", "admin"]


class OrganisationName(Model, frozen=True):
    id: str
    handle: str


class Organisation(Model, frozen=True):
    """An organisation. `role`: the caller's role in it. `members`: how many members it has, including admins.
    `base_role`: the role of all members in all its repositories."""

    id: str
    handle: str
    role: MemberRole
    members: Count
    created_at: str
    base_role: BaseRole = "none"


class OrganisationCreate(Sent, frozen=True):
    handle: Name


class OrganisationChange(Sent, frozen=True):
    """A change of an organisation; absent members change nothing. `handle`: the new handle; the old handle
    redirects for 90 days."""

    handle: Name | None = None
    base_role: BaseRole | None = None


class Member(Model, frozen=True):
    """A member of an organisation. `state` pending: the account is invited and has no rights until it
    accepts."""

    account: Actor
    role: MemberRole
    created_at: str
    state: Literal["active", "pending"] = "active"


class MemberInvite(Model, frozen=True):
    """An invitation of `account` by `inviter` to an organisation."""

    id: str
    organisation: OrganisationName
    account: Actor
    inviter: Actor
    role: MemberRole
    state: OfferState
    created_at: str
    expires_at: str


class MemberInviteCreate(Sent, frozen=True):
    """A new invitation to an organisation. `handle`: the person to invite."""

    handle: Handle
    role: MemberRole = "member"


class MemberChange(Sent, frozen=True):
    role: MemberRole


_ORGS, _INVITES = "/api/v1/orgs", "/api/v1/org-invites"
_ORG = f"{_ORGS}/{{org}}"
_MEMBER = f"{_ORG}/members/{{handle}}"
LIST = Endpoint("GET", _ORGS, query=PageQuery, returns=Page[Organisation])
CREATE = Endpoint("POST", _ORGS, body=OrganisationCreate, returns=Organisation, status=201)
GET = Endpoint("GET", _ORG, returns=Organisation)
UPDATE = Endpoint("PATCH", _ORG, body=OrganisationChange, returns=Organisation)
DELETE: Endpoint[None] = Endpoint("DELETE", _ORG, status=204)
MEMBERS = Endpoint("GET", f"{_ORG}/members", query=PageQuery, returns=Page[Member])
INVITES = Endpoint("GET", f"{_ORG}/invites", query=PageQuery, returns=Page[MemberInvite])
INVITE = Endpoint("POST", f"{_ORG}/invites", body=MemberInviteCreate, returns=MemberInvite, status=201)
SET_ROLE = Endpoint("PATCH", _MEMBER, body=MemberChange, returns=Member)
REMOVE: Endpoint[None] = Endpoint("DELETE", _MEMBER, status=204)
MY_INVITES = Endpoint("GET", _INVITES, query=PageQuery, returns=Page[MemberInvite])
ACCEPT = Endpoint("POST", f"{_INVITES}/{{invite}}/accept", returns=MemberInvite)
DECLINE = Endpoint("POST", f"{_INVITES}/{{invite}}/decline", returns=MemberInvite)
