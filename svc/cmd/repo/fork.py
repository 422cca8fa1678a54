"""The commands `svc repo fork`, `svc repo forks`."""

from __future__ import annotations

from typing import Annotated

import msgspec
import typer

from localstore.core.errors import NotFound
from localstore.core.model import repo as repos
from localstore.core.model.base import PageQuery
from localstore.core.model.repo import ForkCreate, Repo
from localstore.core.names import repository_name
from localstore.errors import FolderNotEmpty
from svc.cmd.frame.context import Ctx
from svc.cmd.frame.options import Limit, Repository
from svc.cmd.org.shared import handle_of
from svc.cmd.repo.create import CREATED, any_inside
from svc.console import Column, answers
from svc.flows.place.target import clone_into
from svc.http.checked import argument, require_valid

COLUMNS = (
    Column("full_name", kind="name"),
    Column("description", kind="line", spare=1),
    Column("stars", spare=3),
    Column("forks", spare=4),
    Column("state", kind="state", spare=2),
    Column("updated_at", kind="time"),
)


@answers(CREATED, Repo)
def fork(
    ctx: Ctx,
    repository: Repository = "",
    name: Annotated[
        str, typer.Option("--name", "--fork-name", metavar="NAME", help="Its name; else that of the original")
    ] = "",
    org: Annotated[
        str, typer.Option("--org", metavar="ORG", help="Of an organisation that you are an admin of")
    ] = "",
    clone: Annotated[
        bool, typer.Option("-c", "--clone", help="Also make a folder of its name here, linked to it")
    ] = False,
    default_branch_only: Annotated[
        bool, typer.Option("--default-branch-only", help="Without the other branches and tags")
    ] = False,
) -> None:
    """Fork a public repository

    Creates a repository of yours, or of an organisation, with the current seals, branches and tags of the
    original. Their bytes are not copied, but the fork counts for its owner's quota like any other repository.
    Only public repositories can be forked, and a fork stays public. Propose your changes with `svc pr create
    -R OWNER/NAME --head YOU:BRANCH`. If some paths are visible only to the original's writers, the fork has
    only digests of these paths. A folder that is linked to the fork does not contain these paths, the fork's
    seals keep them unchanged, and nothing can be proposed from the fork.

    Examples:
    svc repo fork alice/notes --clone
    svc repo fork alice/notes --name my-notes
    svc repo fork alice/notes --org acme
    """
    ctx.obj.set_repository(repository)
    new_name = argument(repository_name, name) if name else None
    owner = handle_of(org) if org else None
    original = ctx.repo
    folder = ctx.obj.below(new_name or original.name)
    if clone and any_inside(folder):
        raise FolderNotEmpty(folder, "give the fork another name with --name, or run this in another folder")
    body = require_valid(ForkCreate(name=new_name, owner=owner, default_branch_only=default_branch_only))
    try:
        copy = ctx.api.send(repos.FORK, body, id=original.id)
    except NotFound:
        if owner is None:
            raise
        raise NotFound(f"you are not a member of an organisation {owner}; see: svc org list") from None
    record = msgspec.to_builtins(copy) | {"folder": None}
    sentence = f"Forked {original.full_name} as {copy.full_name}"
    if copy.partial and not original.partial:
        ctx.out.note(
            f"some paths of {original.full_name} are for its writers only; "
            "the fork has digests in their place"
        )
    if clone:
        record["folder"] = str(clone_into(ctx.obj, copy, copy.default_branch, folder).folder)
        sentence += f", and linked the new folder {folder} to it"
    else:
        sentence += f". Copy it to a folder: svc repo clone {copy.full_name}"
    ctx.out.done(sentence, record, CREATED, Repo, value=copy.full_name)


@answers(COLUMNS, Repo)
def forks(ctx: Ctx, repository: Repository = "", limit: Limit = 30) -> None:
    """List the forks of a repository

    Lists the newest first. Public repositories need no session.

    Examples:
    svc repo forks alice/notes
    svc repo forks --json full_name,updated_at
    """
    ctx.obj.set_repository(repository)
    repo = ctx.readable_repo
    rows = ctx.reader.items(repos.FORKS, PageQuery(), limit=limit, id=repo.id)
    ctx.out.rows(rows, COLUMNS, Repo, empty=f"nobody has forked {repo.full_name}")
