"""`svc repo transfer`, and the commands that list, accept, decline or cancel the offer."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated

import typer

from localstore.core.endpoint import Endpoint
from localstore.core.errors import Forbidden, UsageError
from localstore.core.model import access
from localstore.core.model.access import Transfer, TransferCreate
from svc.cmd.access.shared import find_named, handle_of
from svc.cmd.frame.context import Ctx
from svc.cmd.frame.options import Limit
from svc.console import Column, answers
from svc.flows.place.rights import refusal
from svc.http.checked import require_valid

COLUMNS = (
    Column("id", kind="id"),
    Column("repo", lambda record: (record.get("repo") or {}).get("full_name")),
    Column("sender", handle_of("sender")),
    Column("to", handle_of("to")),
    Column("state", kind="state"),
    Column("org", spare=2),
    Column("expires_at", kind="time", spare=1),
)
Which = Annotated[str, typer.Argument(metavar="[ID|OWNER/NAME]", help="Which one; omit if there is one")]
VERBS = {"accept": "an offer", "decline": "an offer", "cancel": "an offer of yours", "list": "offers"}
LIST = "svc repo transfer-list"


@answers(COLUMNS, Transfer)
def transfer(
    ctx: Ctx,
    handle: Annotated[str, typer.Argument(help="Who is to own it")],
    org: Annotated[bool, typer.Option("--org", help="HANDLE is an organisation")] = False,
) -> None:
    """Offer a repository to another owner

    Ownership moves when the new owner accepts, within seven days. You then have the role admin, and the old
    address leads to the repository for 90 days. For an organisation, any of its admins can accept, including
    you.

    Examples:
    svc repo transfer bob -R alice/notes
    svc repo transfer acme --org -R alice/notes
    """
    if handle in VERBS:
        raise UsageError(
            f"svc repo transfer HANDLE offers a repository; to {handle} {VERBS[handle]}: "
            f"svc repo transfer-{handle}; an account that is called {handle} is named as @{handle}"
        )
    body = require_valid(TransferCreate(to=handle.removeprefix("@"), org=org))
    repo = ctx.repo
    if reason := refusal("transfer.create", repo):
        raise Forbidden(reason)
    ctx.confirm(f"Offering {repo.full_name} to {handle}")
    offer = ctx.api.send(access.TRANSFER, body, id=repo.id)
    sentence = f"Offered {repo.full_name} to @{offer.to.handle}; they accept with: svc repo transfer-accept"
    ctx.out.done(sentence, offer, COLUMNS, Transfer, value=offer.id)


@answers(COLUMNS, Transfer)
def list_transfers(ctx: Ctx, limit: Limit = 30) -> None:
    """List your open transfers

    Lists the transfers that you sent, and those that you may accept.

    Examples:
    svc repo transfer-list
    """
    ctx.out.rows(ctx.api.items(access.TRANSFERS, limit=limit), COLUMNS, Transfer, empty="no transfers")


@answers(COLUMNS, Transfer)
def accept(ctx: Ctx, which: Which = "") -> None:
    """Accept a transfer: become the owner

    Examples:
    svc repo transfer-accept alice/notes
    """
    offer = _find_transfer(ctx, which)
    ctx.confirm(f"Becoming the owner of {offer.repo.full_name}")
    done = ctx.api.send(access.ACCEPT_TRANSFER, transfer=offer.id)
    owns = f"The organisation {done.to.handle} owns" if done.org else "You own"
    ctx.out.done(f"{owns} {done.repo.full_name} now", done, COLUMNS, Transfer, value=done.id)


@answers(COLUMNS, Transfer)
def decline(ctx: Ctx, which: Which = "") -> None:
    """Decline a transfer

    Examples:
    svc repo transfer-decline alice/notes
    """
    _end(ctx, which, access.DECLINE_TRANSFER, "Declined the transfer of")


@answers(COLUMNS, Transfer)
def cancel(ctx: Ctx, which: Which = "") -> None:
    """Take a transfer back

    Examples:
    svc repo transfer-cancel alice/notes
    """
    _end(ctx, which, access.CANCEL_TRANSFER, "Took back the transfer of")


def _end(ctx: Ctx, which: str, endpoint: Endpoint[Transfer], did: str) -> None:
    done = ctx.api.send(endpoint, transfer=_find_transfer(ctx, which).id)
    ctx.out.done(f"{did} {done.repo.full_name}", done, COLUMNS, Transfer, value=done.id)


def _find_transfer(ctx: Ctx, typed: str) -> Transfer:
    def names(offer: Transfer) -> Iterable[str]:
        return offer.id, offer.repo.full_name

    return find_named(ctx.api.items(access.TRANSFERS), typed, names, "transfer", LIST)
