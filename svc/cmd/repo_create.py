"""`svc repo create`."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from localstore.core.errors import Invalid, UsageError
from localstore.core.model import Repo
from localstore.core.model.repo import RepoCreate
from localstore.core.names import repository_name
from svc.cmd.context import Ctx
from svc.cmd.repo_view import COLUMNS
from svc.out import answers


class Kind(StrEnum):
    app = "app"
    lib = "lib"
    model = "model"
    modelpack = "modelpack"
    dataset = "dataset"


@answers(COLUMNS, Repo)
def create(
    ctx: Ctx,
    name: Annotated[str, typer.Argument(help="Its name, without the owner")],
    public: Annotated[
        bool, typer.Option("--public", help="Readable by everybody; else only by those you invite")
    ] = False,
    kind: Annotated[
        Kind, typer.Option("--kind", help="model, modelpack and dataset take files of any size")
    ] = Kind.app,
    description: Annotated[
        str, typer.Option("-d", "--description", metavar="TEXT", help="One line about it")
    ] = "",
    default_branch: Annotated[
        str, typer.Option("--default-branch", metavar="NAME", help="Its first branch")
    ] = "main",
) -> None:
    """Create a repository

    It belongs to you and is private unless --public. The folder you stand in is not linked: that is
    `svc repo init`.

    Examples:
    svc repo create notes
    svc repo create weights --kind model --public -d "Weights of the small model"
    """
    try:
        checked = repository_name(name)
    except Invalid as error:
        raise UsageError(error.detail) from None
    body = RepoCreate(
        name=checked,
        visibility="public" if public else "private",
        kind=kind.value,
        description=description,
        default_branch=default_branch,
    )
    repo = ctx.api.repo.create(body)
    ctx.out.done(
        f"Created {repo.full_name} ({repo.visibility}). Link a folder to it: svc repo init {repo.full_name}",
        repo,
        COLUMNS,
        Repo,
        value=repo.full_name,
    )
