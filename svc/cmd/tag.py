"""`svc repo tag …`."""

from __future__ import annotations

from typing import Annotated

import typer

from localstore.core.model import Ref
from localstore.core.model.ref import RefCreate
from svc.cmd.context import Ctx
from svc.cmd.options import Limit
from svc.cmd.refs import naming
from svc.out import Column

COLUMNS = (Column("name"), Column("head", kind="id"))


def create(
    ctx: Ctx,
    name: Annotated[str, typer.Argument(help="The tag")],
    branch: Annotated[
        str,
        typer.Option("--branch", metavar="B", help="At this branch's last seal; else this folder's branch"),
    ] = "",
) -> None:
    """Create a tag

    Examples:
    svc repo tag create v1.0
    svc repo tag create v1.0 --branch main
    """
    repo = ctx.repo
    made = ctx.api.ref.create(repo.id, RefCreate(type="tag", name=name, head=branch or ctx.branch_of(repo)))
    ctx.out.done(f"Created tag {made.name} at {(made.head or '')[:12]}", made, COLUMNS, Ref, value=made.name)


def list_tags(ctx: Ctx, limit: Limit = 100) -> None:
    """List tags

    Examples:
    svc repo tag list -R alice/notes
    """
    ctx.out.rows(ctx.reader.ref.list(ctx.readable_repo.id, "tag", limit), COLUMNS, Ref, empty="no tags")


def delete(ctx: Ctx, name: Annotated[str, typer.Argument(help="The tag")]) -> None:
    """Delete a tag

    The seal it names stays.

    Examples:
    svc repo tag delete v1.0
    """
    repo = ctx.repo
    with naming(repo, f"tag {name}", "svc repo tag list"):
        ctx.api.ref.delete(repo.id, "tag", name)
    ctx.out.done(f"Deleted tag {name}", {"name": name}, (Column("name"),), value=name)
