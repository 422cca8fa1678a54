"""The commands `svc repo invite …`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated

import typer

from localstore.core.model import access
from localstore.core.model.access import Invite
from svc.cmd.access.shared import find_named, handle_of
from svc.cmd.frame.context import Ctx
from svc.cmd.frame.options import Limit
from svc.console import Column, answers

COLUMNS = (
    Column("id", kind="id"),
    Column("repo", lambda record: (record.get("repo") or {}).get("full_name")),
    Column("role"),
    Column("inviter", handle_of("inviter")),
    Column("expires_at", kind="time", spare=1),
)
Which = Annotated[str, typer.Argument(metavar="[ID|OWNER/NAME]", help="Which one; omit if there is one")]
LIST = "svc repo invite list"


@answers(COLUMNS, Invite)
def list_invites(ctx: Ctx, limit: Limit = 30) -> None:
    """List your open invitations

    Examples:
    svc repo invite list
    """
    ctx.out.rows(ctx.api.items(access.MY_INVITES, limit=limit), COLUMNS, Invite, empty="no invitations")


@answers(COLUMNS, Invite)
def accept(ctx: Ctx, which: Which = "") -> None:
    """Accept an invitation

    Examples:
    svc repo invite accept
    svc repo invite accept alice/notes
    """
    invite = _find_own(ctx, which)
    done = ctx.api.send(access.ACCEPT_INVITE, invite=invite.id)
    sentence = f"You have the role {done.role} in {done.repo.full_name}; to get it: svc repo clone"
    ctx.out.done(f"{sentence} {done.repo.full_name}", done, COLUMNS, Invite, value=done.id)


@answers(COLUMNS, Invite)
def decline(ctx: Ctx, which: Which = "") -> None:
    """Decline an invitation

    Examples:
    svc repo invite decline alice/notes
    """
    invite = _find_own(ctx, which)
    done = ctx.api.send(access.DECLINE_INVITE, invite=invite.id)
    ctx.out.done(f"Declined the invitation to {done.repo.full_name}", done, COLUMNS, Invite, value=done.id)


@answers(COLUMNS, Invite)
def cancel(
    ctx: Ctx, which: Annotated[str, typer.Argument(metavar="ID|HANDLE", help="Which one, or who is invited")]
) -> None:
    """Take an invitation of yours back

    Examples:
    svc repo invite cancel bob -R alice/notes
    """
    repo = ctx.repo

    def names(invite: Invite) -> Iterable[str]:
        return invite.id, invite.account.handle or ""

    invites = ctx.api.items(access.INVITES, id=repo.id)
    offer = find_named(invites, which, names, "invitation", "svc repo collaborator list")
    done = ctx.api.send(access.CANCEL_INVITE, id=repo.id, invite=offer.id)
    ctx.out.done(f"Took back the invitation of @{offer.account.handle}", done, COLUMNS, Invite, value=done.id)


def _find_own(ctx: Ctx, typed: str) -> Invite:
    def names(invite: Invite) -> Iterable[str]:
        return invite.id, invite.repo.full_name

    return find_named(ctx.api.items(access.MY_INVITES), typed, names, "invitation", LIST)
