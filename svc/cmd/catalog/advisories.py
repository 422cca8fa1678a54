"""The command `svc advisories`."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from localstore.core.errors import NotFound, UsageError
from localstore.core.model import advisory as endpoints
from localstore.core.model.advisory import Advisory, AdvisoryQuery
from localstore.core.paths import terminal_safe
from svc.cmd.frame.context import Ctx
from svc.cmd.frame.options import Limit
from svc.console import Column, answers


def _repo(record: dict[str, Any]) -> str:
    return str(record["database_specific"]["repo"])


def _severity(record: dict[str, Any]) -> str:
    return str(record["database_specific"]["severity"])


def _packages(record: dict[str, Any]) -> str:
    return ", ".join(
        f"{affected['package']['name']} ({affected['package']['ecosystem']})"
        for affected in record["affected"]
    )


COLUMNS = (
    Column("id", kind="name"),
    Column("severity", _severity),
    Column("summary", kind="line"),
    Column("repo", _repo),
    Column("affected", _packages, spare=1),
    Column("published", kind="time"),
)


@answers(COLUMNS, Advisory)
def advisories(
    ctx: Ctx,
    advisory: Annotated[str, typer.Argument(metavar="[ID]", help="The advisory to show")] = "",
    limit: Limit = 30,
) -> None:
    """List security advisories, or show one

    Lists the server's advisories, newest first; with -R only the advisories about that repository. Everybody
    may read advisories. They are OSV records; --json shows a whole record.

    Examples:
    svc advisories
    svc advisories -R alice/notes
    """
    named = ctx.obj.named_repo
    if advisory and named is not None and ctx.obj.given.get("repo"):
        raise UsageError("an advisory is named by its id alone; omit -R")
    if not advisory:
        query = AdvisoryQuery(repo=f"{named.owner}/{named.name}" if named else None)
        rows = ctx.reader.items(endpoints.LIST, query, limit=limit)
        ctx.out.rows(rows, COLUMNS, Advisory, empty="no advisories")
        return
    try:
        record = ctx.reader.send(endpoints.GET, advisory=advisory)
    except NotFound:
        raise NotFound(
            f"{ctx.reader.origin} has no advisory {terminal_safe(advisory[:60])}; see: svc advisories"
        ) from None
    ctx.out.record(record, COLUMNS, Advisory, body=record.details, text="details")
