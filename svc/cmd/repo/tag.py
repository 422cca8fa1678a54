"""The commands `svc repo tag …`."""

from __future__ import annotations

from typing import Annotated

import typer

from localstore.core.model import ref as refs
from localstore.core.model.ref import Ref, RefCreate, RefQuery
from svc.cmd.frame.context import Ctx
from svc.cmd.frame.deleting import confirm_unheld
from svc.cmd.frame.options import Limit
from svc.console import Column, answers
from svc.flows.place.known_refs import add, drop, recording
from svc.flows.place.refs import default_ref, explained_not_found, resolve_ref

COLUMNS = (Column("name", kind="name"), Column("head", kind="id"))


@answers(COLUMNS, Ref)
def create(
    ctx: Ctx,
    name: Annotated[str, typer.Argument(help="The tag")],
    branch: Annotated[
        str,
        typer.Option(
            "--from", "--branch", metavar="REF", help="A branch, tag or seal; else this folder's branch"
        ),
    ] = "",
) -> None:
    """Create a tag

    Examples:
    svc repo tag create v1.0
    svc repo tag create v1.0 --from 3f2a91
    """
    repo = ctx.repo
    start = resolve_ref(ctx.obj, repo, branch or default_ref(ctx.obj, repo))
    at = start.name if start.kind == "branch" else start.head
    tag = ctx.api.send(refs.CREATE, RefCreate(type="tag", name=name, head=at), id=repo.id)
    add(ctx.obj.home, repo.id, "tag", [tag.name])
    ctx.out.done(f"Created tag {tag.name} at {(tag.head or '')[:12]}", tag, COLUMNS, Ref, value=tag.name)


@answers(COLUMNS, Ref)
def list_tags(ctx: Ctx, limit: Limit = 100) -> None:
    """List tags

    Examples:
    svc repo tag list -R alice/notes
    """
    repo_id = ctx.readable_repo.id
    rows = ctx.reader.items(refs.LIST, RefQuery(type="tag"), limit=limit, id=repo_id)
    ctx.out.rows(recording(ctx.obj.home, repo_id, "tag", rows, limit), COLUMNS, Ref, empty="no tags")


@answers((Column("name"),))
def delete(ctx: Ctx, name: Annotated[str, typer.Argument(help="The tag")]) -> None:
    """Delete a tag

    The seal of the tag is not deleted. If no branch or other tag leads to it, the command asks, and prints
    the id with which the tag can be restored.

    Examples:
    svc repo tag delete v1.0
    """
    repo = ctx.repo
    with explained_not_found(repo, f"tag {name}", "svc repo tag list"):
        way_back = confirm_unheld(ctx, repo, "tag", name)
        ctx.api.send(refs.DELETE, id=repo.id, type="tag", name=name)
    drop(ctx.obj.home, repo.id, name)
    if way_back:
        ctx.out.note(way_back)
    ctx.out.done(f"Deleted tag {name}", {"name": name}, (Column("name"),), value=name)
