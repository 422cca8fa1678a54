"""The commands `svc repo list`, `svc repo search`."""

from __future__ import annotations

from typing import Annotated

import typer

from localstore.core.errors import UsageError
from localstore.core.model import repo as repos
from localstore.core.model.repo import Order, Repo, RepoQuery, SearchQuery
from svc.cmd.frame.context import Ctx
from svc.cmd.frame.options import Limit
from svc.console import Column, answers

COLUMNS = (
    Column("full_name", kind="name"),
    Column("description", kind="line", spare=2),
    Column("visibility", spare=1),
    Column("kind", spare=4),
    Column("state", kind="state", spare=3),
    Column("updated_at", kind="time"),
)
FOUND = (*COLUMNS[:-1], Column("stars", spare=5), COLUMNS[-1])


@answers(COLUMNS, Repo)
def list_repos(
    ctx: Ctx,
    whose: Annotated[str, typer.Argument(metavar="[OWNER]", help="The owner, as --owner")] = "",
    owner: Annotated[str, typer.Option("--owner", metavar="HANDLE", help="The owner; @me is you")] = "",
    deleted: Annotated[
        bool, typer.Option("--deleted", help="Your deleted repositories that can be restored")
    ] = False,
    limit: Limit = 30,
) -> None:
    """List repositories

    Without an owner it lists the repositories in which you have a role, newest first, and needs a session.
    --owner @me lists only your own repositories. Public repositories of an owner need no session.

    Examples:
    svc repo list
    svc repo list --owner @me
    svc repo list alice --json full_name --jq '.[].full_name'
    svc repo list --deleted
    """
    if whose and owner and whose != owner:
        raise UsageError(f"{whose} and --owner {owner} are two owners; name one")
    owner = whose or owner or ("@me" if deleted else "")
    api = ctx.api if owner in ("", "@me") or deleted else ctx.reader
    query = RepoQuery(owner=owner or None, state="deleted" if deleted else None, mine=not owner)
    rows = api.items(repos.LIST, query, limit=limit)
    columns = (*COLUMNS, Column("id")) if deleted else COLUMNS
    ctx.out.rows(rows, columns, Repo, empty="no repositories; make one: svc repo create NAME")


@answers(FOUND, Repo)
def search(
    ctx: Ctx,
    query: Annotated[str, typer.Argument(help="Words of the name or the description")],
    trending: Annotated[bool, typer.Option("--trending", help="Sort by recent seals and by stars")] = False,
    recent: Annotated[bool, typer.Option("--recent", help="Sort by the time of the last change")] = False,
    limit: Limit = 30,
) -> None:
    """Search repositories

    Searches the repositories that you may see; without a session the public ones.

    Examples:
    svc repo search parser --recent
    """
    if trending and recent:
        raise UsageError("--trending and --recent are two orders; use one of them")
    sort: Order | None = "trending" if trending else "recent" if recent else None
    rows = ctx.reader.items(repos.SEARCH, SearchQuery(q=query, sort=sort), limit=limit)
    ctx.out.rows(rows, FOUND, Repo, empty="no repository matches")
