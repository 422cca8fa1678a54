"""`svc label …`."""

from __future__ import annotations

from typing import Annotated

import typer

from localstore.core.model import label as labels
from localstore.core.model.label import Label, LabelCreate
from svc.cmd.frame.context import Ctx
from svc.cmd.frame.options import Limit
from svc.cmd.frame.queueing import queueable
from svc.console import Column, answers
from svc.http.checked import checked

COLUMNS = (Column("name"), Column("color"), Column("description", kind="line"))


@queueable
@answers(COLUMNS, Label)
def create(
    ctx: Ctx,
    name: Annotated[str, typer.Argument(help="The label")],
    color: Annotated[
        str, typer.Option("-c", "--color", metavar="HEX", help="Six hex digits, such as d73a4a")
    ] = "ededed",
    description: Annotated[str | None, typer.Option("-d", "--description", metavar="TEXT")] = None,
) -> None:
    """Create a label

    Examples:
    svc label create bug -c d73a4a -d "Something does not work"
    """
    body = checked(LabelCreate(name=name, color=color, description=description))
    made = ctx.api.send(labels.CREATE, body, id=ctx.repo.id)
    ctx.out.done(f"Created label {made.name} ({made.color})", made, COLUMNS, Label, value=made.name)


@answers(COLUMNS, Label)
def list_labels(ctx: Ctx, limit: Limit = 100) -> None:
    """List labels

    Examples:
    svc label list -R alice/notes
    """
    repo = ctx.readable_repo
    ctx.out.rows(ctx.reader.items(labels.LIST, limit=limit, id=repo.id), COLUMNS, Label, empty="no labels")
