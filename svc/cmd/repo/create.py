"""The command `svc repo create`."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import msgspec
import typer

from localstore.core.errors import NotFound
from localstore.core.model import repo as repos
from localstore.core.model.repo import Repo, RepoCreate
from localstore.core.names import handle, repository_name
from localstore.errors import FolderNotEmpty
from svc.cmd.frame.context import Ctx
from svc.cmd.repo.view import COLUMNS
from svc.console import Column, answers
from svc.flows.place.target import clone_into
from svc.http.checked import argument, require_valid

CREATED = (*COLUMNS, Column("folder"))


class Kind(StrEnum):
    app = "app"
    lib = "lib"
    model = "model"
    modelpack = "modelpack"
    dataset = "dataset"


@answers(CREATED, Repo)
def create(
    ctx: Ctx,
    name: Annotated[str, typer.Argument(metavar="[ORG/]NAME", help="Its name; before it an organisation's")],
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
    clone: Annotated[
        bool, typer.Option("-c", "--clone", help="Also make a folder of its name here, linked to it")
    ] = False,
) -> None:
    """Create a repository

    It belongs to you, or to ORG if you are its admin. It is private unless --public is given. The current
    folder is not linked to it; `svc repo init` does that. --clone makes a new folder.

    Examples:
    svc repo create notes
    svc repo create notes --clone
    svc repo create acme/notes
    svc repo create weights --kind model --public -d "Weights of the small model"
    """
    owner, slash, name = name.rpartition("/")
    name = argument(repository_name, name)
    body = require_valid(
        RepoCreate(
            name=name,
            owner=argument(handle, owner.removeprefix("@")) if slash else None,
            visibility="public" if public else "private",
            kind=kind.value,
            description=description,
            default_branch=default_branch,
        )
    )
    if clone and any_inside(ctx.obj.below(name)):
        raise FolderNotEmpty(ctx.obj.below(name))
    try:
        repo = ctx.api.send(repos.CREATE, body)
    except NotFound:
        raise NotFound(f"you are not a member of an organisation {owner}; see: svc org list") from None
    record = msgspec.to_builtins(repo) | {"folder": None}
    created = f"Created {repo.full_name} ({repo.visibility})"
    if clone:
        target = ctx.obj.below(repo.name)
        record["folder"] = str(clone_into(ctx.obj, repo, repo.default_branch, target).folder)
        sentence = f"{created}, and linked the new folder {target} to it"
    else:
        sentence = f"{created}. Link a folder to it: svc repo init {repo.full_name}"
    ctx.out.done(sentence, record, CREATED, Repo, value=repo.full_name)


def any_inside(folder: Path) -> bool:
    """Return whether the folder is not empty. If it does not exist, returns False; if it is a file, True."""
    return folder.exists() and (not folder.is_dir() or any(folder.iterdir()))
