"""The commands `svc org member …`, `svc org leave`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated

import typer

from localstore.core.errors import NotFound
from localstore.core.model import organisation
from localstore.core.model.organisation import (
    Member,
    MemberChange,
    MemberInvite,
    MemberInviteCreate,
)
from svc.cmd.access import shared
from svc.cmd.frame.context import Ctx
from svc.cmd.frame.options import Limit
from svc.cmd.org.org import Name
from svc.cmd.org.shared import MemberRoleName, explain_missing_org, handle_of
from svc.console import Column, answers

PEOPLE = (
    Column("handle", shared.handle_of("account")),
    Column("role"),
    Column("state", kind="state"),
    Column("created_at", kind="time", spare=1),
)
INVITED = (
    Column("handle", shared.handle_of("account")),
    Column("role"),
    Column("state", kind="state"),
    Column("expires_at", kind="time"),
    Column("id", kind="id"),
)
Handle = Annotated[str, typer.Argument(help="Their handle; @me for yourself")]


@answers(PEOPLE, Member)
def list_members(ctx: Ctx, org: Name, limit: Limit = 100) -> None:
    """List members, and who is invited

    Admins also see open invitations, as pending.

    Examples:
    svc org member list acme
    """
    org = handle_of(org)
    with explain_missing_org(org):
        role = ctx.api.send(organisation.GET, org=org).role
        ctx.out.rows(_list_people(ctx, org, role == "admin", limit), PEOPLE, Member)


@answers(INVITED, MemberInvite)
def add(
    ctx: Ctx,
    org: Name,
    handle: Annotated[str, typer.Argument(help="Whom to invite")],
    role: Annotated[
        MemberRoleName, typer.Option("--role", "-r", help="What they are")
    ] = MemberRoleName.member,
) -> None:
    """Invite somebody to an organisation

    Their membership begins when they accept: svc org invite accept. The invitation is open for seven days. An
    admin has the rights of the owner in all repositories of the organisation, and manages its members. A
    member sees who is a member, and has the roles that svc repo collaborator add gives them.

    Examples:
    svc org member add acme bob
    svc org member add acme carol --role admin
    """
    org = handle_of(org)
    body = MemberInviteCreate(handle=handle_of(handle), role=role.value)
    with explain_missing_org(org):
        invite = ctx.api.send(organisation.INVITE, body, org=org)
    sentence = (
        f"Invited @{invite.account.handle} to {org} as {invite.role}; they accept with: svc org invite accept"
    )
    ctx.out.done(sentence, invite, INVITED, MemberInvite, value=invite.id)


@answers(PEOPLE, Member)
def role(
    ctx: Ctx, org: Name, handle: Handle, role: Annotated[MemberRoleName, typer.Argument(help="The new role")]
) -> None:
    """Make a member an admin, or an admin a member

    It also changes the role of an open invitation. A former admin keeps the roles that they were given in
    repositories.

    Examples:
    svc org member role acme bob admin
    """
    org, who = handle_of(org), _person(handle)
    try:
        changed = ctx.api.send(organisation.SET_ROLE, MemberChange(role=role.value), org=org, handle=who)
    except NotFound:
        raise _no_member(ctx, org, handle) from None
    what = "is invited as" if changed.state == "pending" else "is now"
    ctx.out.done(f"@{changed.account.handle} {what} {changed.role} of {org}", changed, PEOPLE, Member)


@answers((Column("handle"),))
def remove(ctx: Ctx, org: Name, handle: Handle) -> None:
    """Remove a member, or take an invitation back

    The member loses every role in the organisation's repositories at once, including roles that were given
    individually. Their open sockets and uploads end, and so do their pushes and merges in progress. Copies
    that they already have stay with them. Anybody may leave, except the last admin.

    Examples:
    svc org member remove acme bob
    """
    org = handle_of(org)
    _remove(ctx, org, handle, f"Removing {handle} from {org}")


@answers((Column("handle"),))
def leave(ctx: Ctx, org: Name) -> None:
    """Leave an organisation

    You lose every role in its repositories. The last admin cannot leave.

    Examples:
    svc org leave acme
    """
    org = handle_of(org)
    _remove(ctx, org, "@me", f"Leaving {org}")


def _remove(ctx: Ctx, org: str, handle: str, doing: str) -> None:
    who = _person(handle)
    ctx.confirm(doing)
    try:
        ctx.api.send(organisation.REMOVE, org=org, handle=who)
    except NotFound:
        raise _no_member(ctx, org, handle) from None
    name = who.removeprefix("@")
    subject = "You are" if who == "@me" else f"@{name} is"
    ctx.out.done(f"{subject} not a member of {org} any more", {"handle": who}, PEOPLE[:1])


def _person(typed: str) -> str:
    return typed if typed == "@me" else handle_of(typed)


def _list_people(ctx: Ctx, org: str, admin: bool, limit: int) -> Iterator[Member]:
    remaining = limit
    for member in ctx.api.items(organisation.MEMBERS, limit=limit, org=org):
        remaining -= 1
        yield member
    if remaining <= 0 or not admin:
        return
    for invite in ctx.api.items(organisation.INVITES, limit=remaining, org=org):
        yield Member(account=invite.account, role=invite.role, created_at=invite.created_at, state="pending")


def _no_member(ctx: Ctx, org: str, handle: str) -> NotFound:
    """Return the NotFound error which says that a person is not a member and not invited. If the user cannot
    see the organisation, raises NotFound about the organisation instead."""
    with explain_missing_org(org):
        next(ctx.api.items(organisation.MEMBERS, limit=1, org=org), None)
    return NotFound(f"{handle} is not a member of {org} and is not invited; see: svc org member list {org}")
