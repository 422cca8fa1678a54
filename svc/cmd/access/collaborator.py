"""The commands `svc repo collaborator …`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated

import typer

from localstore.core.errors import NotFound
from localstore.core.model import access
from localstore.core.model.access import Collaborator, Invite, InviteCreate, RoleChange
from localstore.core.model.repo import Repo
from svc.cmd.access.shared import RoleName, handle_of
from svc.cmd.frame.context import Ctx
from svc.cmd.frame.options import Limit
from svc.console import Column, answers
from svc.http.checked import require_valid

PEOPLE = (
    Column("handle", handle_of("account")),
    Column("role"),
    Column("state", kind="state"),
    Column("created_at", kind="time", spare=1),
)
INVITED = (
    Column("handle", handle_of("account")),
    Column("role"),
    Column("state", kind="state"),
    Column("expires_at", kind="time"),
    Column("id", kind="id"),
)
Handle = Annotated[str, typer.Argument(help="Their handle; @me for yourself")]


@answers(PEOPLE, Collaborator)
def list_collaborators(ctx: Ctx, limit: Limit = 100) -> None:
    """List who has a role, and who is invited

    The list does not include the owner. The owner also sees open invitations, as pending.

    Examples:
    svc repo collaborator list -R alice/notes
    """
    ctx.out.rows(_list_people(ctx, ctx.repo, limit), PEOPLE, Collaborator, empty="only the owner")


@answers(INVITED, Invite)
def add(
    ctx: Ctx,
    handle: Annotated[str, typer.Argument(help="Whom to invite")],
    role: Annotated[RoleName, typer.Option("--role", "-r", help="What they may do")] = RoleName.read,
) -> None:
    """Invite somebody to a role

    Their rights begin when they accept: svc repo invite accept. The invitation is open for seven days. Roles:
    read can see everything; triage can also label, close and assign; write can also push, merge and release;
    admin can also moderate. Only the owner can change the settings.

    Examples:
    svc repo collaborator add bob --role write
    """
    body = require_valid(InviteCreate(handle=handle.removeprefix("@"), role=role.value))
    repo = ctx.repo
    invite = ctx.api.send(access.INVITE, body, id=repo.id)
    sentence = f"Invited @{invite.account.handle} to {repo.full_name} as {invite.role}"
    ctx.out.done(
        f"{sentence}; they accept with: svc repo invite accept", invite, INVITED, Invite, value=invite.id
    )


@answers(PEOPLE, Collaborator)
def role(ctx: Ctx, handle: Handle, role: Annotated[RoleName, typer.Argument(help="The new role")]) -> None:
    """Change somebody's role

    It also changes the role of an open invitation.

    Examples:
    svc repo collaborator role bob triage
    """
    repo = ctx.repo
    try:
        body = RoleChange(role=role.value)
        changed = ctx.api.send(access.SET_ROLE, body, id=repo.id, handle=handle.removeprefix("@"))
    except NotFound:
        raise _no_collaborator(repo, handle) from None
    what = "is invited as" if changed.state == "pending" else "has now the role"
    ctx.out.done(f"@{changed.account.handle} {what} {changed.role}", changed, PEOPLE, Collaborator)


@answers((Column("handle"),))
def remove(ctx: Ctx, handle: Handle) -> None:
    """Take a role or an invitation away

    That person's open sockets and uploads end at once, and so do their pushes and merges in progress. Copies
    that they already have stay with them. Anybody may give up their own role.

    Examples:
    svc repo collaborator remove bob
    svc repo collaborator remove @me -R alice/notes
    """
    repo = ctx.repo
    ctx.confirm(f"Taking {handle}'s access to {repo.full_name} away")
    person = handle if handle == "@me" else handle.removeprefix("@")
    try:
        ctx.api.send(access.REMOVE, id=repo.id, handle=person)
    except NotFound:
        raise _no_collaborator(repo, handle) from None
    record = {"handle": person}
    ctx.out.done(f"@{person.removeprefix('@')} has no role in {repo.full_name} any more", record, PEOPLE[:1])


def _list_people(ctx: Ctx, repo: Repo, limit: int) -> Iterator[Collaborator]:
    remaining = limit
    for collaborator in ctx.api.items(access.COLLABORATORS, limit=limit, id=repo.id):
        remaining -= 1
        yield collaborator
    if remaining > 0 and repo.viewer is not None and repo.viewer.role == "owner":
        for invite in ctx.api.items(access.INVITES, limit=remaining, id=repo.id):
            yield Collaborator(
                account=invite.account, role=invite.role, created_at=invite.created_at, state="pending"
            )


def _no_collaborator(repo: Repo, handle: str) -> NotFound:
    return NotFound(
        f"{handle} has no role in {repo.full_name} and is not invited; see: svc repo collaborator list"
    )
