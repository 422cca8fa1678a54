"""The commands `svc repo access …`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated

import typer

from localstore.core.errors import UsageError
from localstore.core.model import access
from localstore.core.model.access import AccessGrant, AccessRequest, AccessRequestCreate
from svc.cmd.access.shared import RoleName, find_named, handle_of
from svc.cmd.frame.context import Ctx
from svc.cmd.frame.options import Limit
from svc.console import Column, answers
from svc.flows.place.where import read_address
from svc.http.checked import require_valid

COLUMNS = (
    Column("id", kind="id"),
    Column("handle", handle_of("account")),
    Column("role"),
    Column("note", kind="line"),
    Column("created_at", kind="time", spare=1),
)
ASKED = (Column("repo"), Column("role"))
Which = Annotated[str, typer.Argument(metavar="ID|HANDLE", help="The request, or who asks")]
LIST = "svc repo access list"


@answers(COLUMNS, AccessRequest)
def list_requests(ctx: Ctx, limit: Limit = 30) -> None:
    """List who asks for access

    Examples:
    svc repo access list -R alice/notes
    """
    repo = ctx.repo
    requests = ctx.api.items(access.REQUESTS, limit=limit, id=repo.id)
    ctx.out.rows(requests, COLUMNS, AccessRequest, empty="nobody asks")


@answers(ASKED)
def request(
    ctx: Ctx,
    repository: Annotated[
        str, typer.Argument(metavar="[OWNER/NAME]", help="Instead of -R; else this folder's")
    ] = "",
    role: Annotated[RoleName, typer.Option("--role", "-r", help="What you want to do")] = RoleName.read,
    note: Annotated[str, typer.Option("-m", "--note", metavar="TEXT", help="For the owner")] = "",
) -> None:
    """Ask the owner of a repository for access

    The answer is the same whether or not the repository exists. If access is granted, your inbox says so, and
    svc repo list shows the repository.

    Examples:
    svc repo access request alice/notes --role write -m "For the release"
    """
    linked = ctx.obj.linked
    address = read_address(repository) if repository else ctx.obj.named_repo
    if address is None and linked:
        address = read_address(linked[1].repo)
    if address is None:
        raise UsageError("which repository? svc repo access request OWNER/NAME")
    name = f"{address.owner}/{address.name}"
    ctx.api.send(access.REQUEST, require_valid(AccessRequestCreate(repo=name, role=role.value, note=note)))
    record = {"repo": name, "role": role.value}
    ctx.out.done(f"If there is a repository {name}, its owner is asked", record, ASKED)


@answers(COLUMNS, AccessRequest)
def grant(
    ctx: Ctx,
    which: Which,
    role: Annotated[RoleName | None, typer.Option("--role", "-r", help="Instead of what was asked")] = None,
) -> None:
    """Give access to somebody who asked

    Examples:
    svc repo access grant bob
    svc repo access grant bob --role read
    """
    access_request = _find_request(ctx, which)
    body = AccessGrant(role=role.value if role else None)
    done = ctx.api.send(access.GRANT, body, request_id=access_request.id)
    sentence = f"@{done.account.handle} has the role {role.value if role else done.role} now"
    ctx.out.done(sentence, done, COLUMNS, AccessRequest, value=done.id)


@answers(COLUMNS, AccessRequest)
def decline(ctx: Ctx, which: Which) -> None:
    """Decline a request for access

    Examples:
    svc repo access decline bob
    """
    access_request = _find_request(ctx, which)
    done = ctx.api.send(access.DECLINE_REQUEST, request_id=access_request.id)
    ctx.out.done(
        f"Declined the request of @{done.account.handle}", done, COLUMNS, AccessRequest, value=done.id
    )


def _find_request(ctx: Ctx, typed: str) -> AccessRequest:
    def names(access_request: AccessRequest) -> Iterable[str]:
        return access_request.id, access_request.account.handle or ""

    return find_named(ctx.api.items(access.REQUESTS, id=ctx.repo.id), typed, names, "request", LIST)
