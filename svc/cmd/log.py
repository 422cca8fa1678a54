"""`svc log`."""

from __future__ import annotations

from typing import Annotated

import typer

from localstore.core.encoding import is_hex_digest
from localstore.core.model import SealSummary
from svc.cmd.context import Ctx
from svc.cmd.options import Limit
from svc.out import Column


def author(record: dict[str, object]) -> object:
    """Whose device sealed it, or whom an imported commit names."""
    provenance = record.get("provenance")
    if not isinstance(provenance, dict):
        return None
    return provenance.get("author") or provenance["who"]["handle"] or provenance["who"]["id"]


COLUMNS = (
    Column("id", kind="id"),
    Column("created_at", kind="time"),
    Column("author", author),
    Column("message", kind="line"),
)


def log(
    ctx: Ctx,
    ref: Annotated[str, typer.Argument(help="A branch, tag or seal id; else this folder's branch")] = "",
    path: Annotated[str, typer.Option("--path", metavar="PATH", help="Only seals that changed it")] = "",
    limit: Limit = 30,
) -> None:
    """List the seals of a branch, newest first

    Examples:
    svc log
    svc log v1.0 -L 5
    svc log --path src/main.py --json id,message
    """
    repo = ctx.readable_repo
    start = ref or ctx.branch_of(repo)
    sha = start if is_hex_digest(start) else None
    found = ctx.reader.history.commits(
        repo.id,
        ref=None if sha else start,
        sha=sha,
        path=ctx.path_in_repo(path) if path else None,
        limit=limit,
    )
    ctx.out.rows(
        found, COLUMNS, SealSummary, empty=f"{start} has no seals yet; make one: svc push -m MESSAGE"
    )
