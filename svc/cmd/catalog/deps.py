"""The commands `svc repo deps` and `svc repo dependents`."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from localstore.core.model import dependency as endpoints
from localstore.core.model.dependency import Dependency, DependencyQuery, Dependent
from localstore.core.paths import terminal_safe
from svc.cmd.frame.context import Ctx
from svc.cmd.frame.options import Limit, Repository
from svc.console import Column, answers


def _advisories(record: dict[str, Any]) -> str:
    return ", ".join(
        advisory["id"] if advisory["certain"] else f"{advisory['id']}?" for advisory in record["advisories"]
    )


COLUMNS = (
    Column("name", kind="name"),
    Column("requirement"),
    Column("ecosystem"),
    Column("path", spare=1),
    Column("advisory", _advisories),
)
DEPENDENTS = (Column("full_name", kind="name"), Column("description", kind="line"))


@answers(COLUMNS, Dependency)
def deps(
    ctx: Ctx,
    repository: Repository = "",
    ref: Annotated[
        str, typer.Option("--ref", metavar="REF", help="A branch, a tag or a seal; else the default branch")
    ] = "",
    limit: Limit = 100,
) -> None:
    """Show what a repository depends on

    The dependencies are read from .svc.yaml (depends), pyproject.toml, requirements.txt, package.json,
    Cargo.toml and go.mod of a seal. Advisories on the server about a dependency are shown, too. An advisory
    has a question mark if the file does not fix the version of the dependency.

    Examples:
    svc repo deps
    svc repo deps --ref v1.0.0 --json name,advisories
    """
    ctx.obj.set_repository(repository)
    repo = ctx.readable_repo
    answer = ctx.reader.send(endpoints.LIST, query=DependencyQuery(ref=ref or None), id=repo.id)
    for manifest in answer.manifests:
        if manifest.problem is not None:
            ctx.out.note(
                f"svc: {terminal_safe(manifest.path)} was not read: {terminal_safe(manifest.problem)}"
            )
    if not answer.complete:
        ctx.out.note("svc: there are more manifests or dependencies than the server reads")
    if len(answer.items) > limit:
        ctx.out.note(f"svc: {len(answer.items) - limit} more; see them with -L {len(answer.items)}")
    ctx.out.rows(answer.items[:limit], COLUMNS, Dependency, empty="no dependencies")


@answers(DEPENDENTS, Dependent)
def dependents(ctx: Ctx, repository: Repository = "", limit: Limit = 100) -> None:
    """List the repositories that depend on this one

    Lists the repositories that you may see and whose default branch names this one under depends in
    .svc.yaml.

    Examples:
    svc repo dependents alice/toolkit
    """
    ctx.obj.set_repository(repository)
    repo = ctx.readable_repo
    rows = ctx.reader.items(endpoints.DEPENDENTS, limit=limit, id=repo.id)
    ctx.out.rows(rows, DEPENDENTS, Dependent, empty="nothing that you see depends on it")
