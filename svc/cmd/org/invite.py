"""The commands `svc org invite …`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated

import typer

from localstore.core.model import organisation
from localstore.core.model.organisation import MemberInvite
from svc.cmd.access.shared import find_named, handle_of
from svc.cmd.frame.context import Ctx
from svc.cmd.frame.options import Limit
from svc.console import Column, answers

COLUMNS = (
    Column("id", kind="id"),
    Column("organisation", handle_of("organisation")),
    Column("role"),
    Column("inviter", handle_of("inviter")),
    Column("expires_at", kind="time", spare=1),
)
Which = Annotated[str, typer.Argument(metavar="[ID|ORG]", help="Which one; omit if there is one")]
LIST = "svc org invite list"


@answers(COLUMNS, MemberInvite)
def list_invites(ctx: Ctx, limit: Limit = 30) -> None:
    """List your invitations to organisations

    Examples:
    svc org invite list
    """
    rows = ctx.api.items(organisation.MY_INVITES, limit=limit)
    ctx.out.rows(rows, COLUMNS, MemberInvite, empty="no invitations")


@answers(COLUMNS, MemberInvite)
def accept(ctx: Ctx, which: Which = "") -> None:
    """Accept an invitation to an organisation

    Examples:
    svc org invite accept acme
    """
    done = ctx.api.send(organisation.ACCEPT, invite=_find_own(ctx, which).id)
    org = done.organisation.handle
    article = "an" if done.role == "admin" else "a"
    sentence = f"You are {article} {done.role} of {org}; its repositories: svc repo list {org}"
    ctx.out.done(sentence, done, COLUMNS, MemberInvite, value=done.id)


@answers(COLUMNS, MemberInvite)
def decline(ctx: Ctx, which: Which = "") -> None:
    """Decline an invitation to an organisation

    Examples:
    svc org invite decline acme
    """
    done = ctx.api.send(organisation.DECLINE, invite=_find_own(ctx, which).id)
    sentence = f"Declined the invitation to {done.organisation.handle}"
    ctx.out.done(sentence, done, COLUMNS, MemberInvite, value=done.id)


def _find_own(ctx: Ctx, typed: str) -> MemberInvite:
    def names(invite: MemberInvite) -> Iterable[str]:
        return invite.id, invite.organisation.handle

    return find_named(ctx.api.items(organisation.MY_INVITES), typed, names, "invitation", LIST)
