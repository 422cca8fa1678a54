"""The commands `svc label …`."""

from __future__ import annotations

from typing import Annotated

import typer

from localstore.core.errors import UsageError
from localstore.core.model import label as labels
from localstore.core.model.label import Label, LabelClone, LabelCreate, LabelPatch, LabelsCloned
from svc.cmd.frame.context import Ctx
from svc.cmd.frame.options import Color, Description, Limit
from svc.cmd.frame.queueing import queueable
from svc.console import Column, answers
from svc.flows.place.known_subjects import drop_label, listing_labels
from svc.flows.place.refs import explained_not_found
from svc.http.checked import require_valid

COLUMNS = (Column("name"), Column("color"), Column("description", kind="line"))

CLONED = (Column("created"), Column("changed"), Column("left"))
Name = Annotated[str, typer.Argument(help="The label")]


@queueable
@answers(COLUMNS, Label)
def create(
    ctx: Ctx,
    name: Annotated[str, typer.Argument(help="The label")],
    color: Annotated[str, Color] = "ededed",
    description: Annotated[str | None, Description] = None,
) -> None:
    """Create a label

    Examples:
    svc label create bug -c d73a4a -d "Something does not work"
    """
    body = require_valid(LabelCreate(name=name, color=color, description=description))
    repo = ctx.repo
    label = ctx.api.send(labels.CREATE, body, id=repo.id)
    list(listing_labels(ctx.obj.home, repo.id, [label]))
    ctx.out.done(f"Created label {label.name} ({label.color})", label, COLUMNS, Label, value=label.name)


@answers(COLUMNS, Label)
def list_labels(ctx: Ctx, limit: Limit = 100) -> None:
    """List labels

    Examples:
    svc label list -R alice/notes
    """
    repo = ctx.readable_repo
    rows = ctx.reader.items(labels.LIST, limit=limit, id=repo.id)
    ctx.out.rows(listing_labels(ctx.obj.home, repo.id, rows), COLUMNS, Label, empty="no labels")


@queueable
@answers(COLUMNS, Label)
def edit(
    ctx: Ctx,
    name: Name,
    new_name: Annotated[str | None, typer.Option("-n", "--name", metavar="NAME", help="Its new name")] = None,
    color: Annotated[str | None, Color] = None,
    description: Annotated[str | None, Description] = None,
) -> None:
    """Change a label everywhere

    Examples:
    svc label edit bug --name defect -c ff0000
    """
    patch = require_valid(LabelPatch(name=new_name, color=color, description=description))
    if patch == LabelPatch():
        raise UsageError("say what to change: --name NAME, -c HEX or -d TEXT")
    repo = ctx.repo
    with explained_not_found(repo, f"label {name}", "svc label list"):
        label = ctx.api.send(labels.UPDATE, patch, id=repo.id, name=name)
    drop_label(ctx.obj.home, repo.id, name)
    list(listing_labels(ctx.obj.home, repo.id, [label]))
    ctx.out.done(f"Changed label {label.name} ({label.color})", label, COLUMNS, Label, value=label.name)


@queueable
@answers((Column("name"),))
def delete(ctx: Ctx, name: Name) -> None:
    """Delete a label and remove it from everything

    Examples:
    svc label delete bug --yes
    """
    repo = ctx.repo
    ctx.confirm(f"Deleting label {name} takes it off every issue and proposal of {repo.full_name}")
    with explained_not_found(repo, f"label {name}", "svc label list"):
        ctx.api.send(labels.DELETE, id=repo.id, name=name)
    drop_label(ctx.obj.home, repo.id, name)
    ctx.out.done(f"Deleted label {name}", {"name": name}, (Column("name"),), value=name)


@answers(CLONED, LabelsCloned)
def clone(
    ctx: Ctx,
    source: Annotated[str, typer.Argument(metavar="OWNER/NAME", help="Whose labels are copied")],
    force: Annotated[bool, typer.Option("-f", "--force", help="Overwrite labels of the same name")] = False,
) -> None:
    """Copy the labels of another repository

    Existing labels stay unchanged, unless --force is given.

    Examples:
    svc label clone alice/notes -R alice/app
    """
    body = require_valid(LabelClone(source=source, force=force))
    repo = ctx.repo
    outcome = ctx.api.send(labels.CLONE, body, id=repo.id)
    counts = f"{outcome.created} created, {outcome.changed} changed, {outcome.left} left as they were"
    ctx.out.done(f"Copied the labels of {source}: {counts}", outcome, CLONED, LabelsCloned, value=source)
