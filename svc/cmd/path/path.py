"""The commands `svc repo paths list|set|remove|timeline`."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from localstore.core import paths
from localstore.core.errors import UsageError
from localstore.core.model import path as endpoints
from localstore.core.model.path import PathChange, PathRule, PathRuleRemove, PathRuleSet
from localstore.core.tree.policy import Visibility
from svc.cmd.frame.context import Ctx
from svc.cmd.frame.options import Limit
from svc.console import Column, answers
from svc.flows.place.refs import explained_not_found
from svc.http.checked import argument, require_valid

WHOLE = "."  # the whole tree, as people type it


def path_of(record: dict[str, Any]) -> str:
    return str(record["path"]) or WHOLE


def by(record: dict[str, Any]) -> str:
    who = record["by"]
    return str(who.get("handle") or who["id"])


COLUMNS = (Column("path", path_of, kind="name"), Column("visibility"), Column("price_cents"))
CHANGES = (
    Column("at", kind="time"),
    Column("by", by),
    Column("path", path_of, kind="name"),
    Column("from"),
    Column("to"),
)
Typed = Annotated[str, typer.Argument(metavar="PATH", help="A file or folder; . is the whole tree")]


@answers(COLUMNS, PathRule)
def list_paths(ctx: Ctx, limit: Limit = 100) -> None:
    """List the rules for paths

    Allowed for people who may write. If several rules match a path, the rule with the longest path applies.

    Examples:
    svc repo paths list
    """
    repo = ctx.repo
    rows = ctx.api.items(endpoints.LIST, limit=limit, id=repo.id)
    ctx.out.rows(rows, COLUMNS, PathRule, empty="no rules: who reads the repository sees all of it")


@answers(COLUMNS, PathRule)
def set_path(
    ctx: Ctx,
    path: Typed,
    public: Annotated[bool, typer.Option("--public", help="Whoever reads the repository sees it")] = False,
    private: Annotated[bool, typer.Option("--private", help="Its writers alone see it")] = False,
    open_: Annotated[bool, typer.Option("--open", help="As --public, and never for a price")] = False,
    price_cents: Annotated[
        int | None,
        typer.Option("--price-cents", min=0, metavar="N", help="What it costs, on a node that bills"),
    ] = None,
) -> None:
    """Say who sees a path and what is below it

    Allowed for the owner. The rule applies to all seals, including past ones. Copies that readers already
    have are not affected.

    Examples:
    svc repo paths set secret --private
    svc repo paths set secret/readme.md --public
    """
    chosen: list[Visibility] = []
    if public:
        chosen.append("public")
    if private:
        chosen.append("private")
    if open_:
        chosen.append("open")
    if len(chosen) != 1:
        raise UsageError("say who sees it: one of --public, --private and --open")
    if open_ and price_cents:
        raise UsageError("--open is never for a price; omit --price-cents")
    body = require_valid(PathRuleSet(path=_path(ctx, path), visibility=chosen[0], price_cents=price_cents))
    rule = ctx.api.send(endpoints.SET, body, id=ctx.repo.id)
    name = rule.path or WHOLE
    ctx.out.done(f"{name} is {rule.visibility}", rule, COLUMNS, PathRule, value=name)


@answers((Column("path"),))
def remove(ctx: Ctx, path: Typed) -> None:
    """Remove the rule for a path

    Allowed for the owner. The rules for the folders above then apply again. If there are none, all readers of
    the repository see the path.

    Examples:
    svc repo paths remove secret
    """
    where = _path(ctx, path)
    name, repo = where or WHOLE, ctx.repo
    with explained_not_found(repo, f"rule for {name}", "svc repo paths list"):
        ctx.api.send(endpoints.REMOVE, query=PathRuleRemove(path=where), id=repo.id)
    ctx.out.done(f"Removed the rule for {name}", {"path": name}, (Column("path"),), value=name)


@answers(CHANGES, PathChange)
def timeline(ctx: Ctx, limit: Limit = 30) -> None:
    """Show how the rules for paths changed

    Allowed for the owner. The newest change comes first.

    Examples:
    svc repo paths timeline
    """
    repo = ctx.repo
    rows = ctx.api.items(endpoints.TIMELINE, limit=limit, id=repo.id)
    ctx.out.rows(rows, CHANGES, PathChange, empty="no rules so far")


def _path(ctx: Ctx, typed: str) -> str:
    """Return a path that the user typed as a path in the repository. "" means the whole tree. Raises
    UsageError for an invalid path."""
    path = ctx.path_in_repo(typed).rstrip("/")
    return "" if path in ("", WHOLE) else argument(paths.check, path)
