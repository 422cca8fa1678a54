"""The commands `svc repo run list|view`."""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal, cast, get_args

import typer

from localstore.core.errors import EXIT_FAILED, EXIT_PENDING, NotFound, UsageError
from localstore.core.model import run as runs
from localstore.core.model.repo import Repo
from localstore.core.model.run import Conclusion, Run, RunQuery, Status, state_of
from svc.cmd.frame.context import Ctx
from svc.cmd.frame.options import Limit
from svc.console import Column, answers
from svc.flows.place.refs import explained_not_found, resolve_ref
from svc.flows.waiting.checks import FAILED
from svc.http.checked import require_valid

LIST = "svc repo run list"
ID_CHARS = 32
Word = Literal[
    "queued",
    "in_progress",
    "completed",
    "success",
    "failure",
    "neutral",
    "cancelled",
    "skipped",
    "timed_out",
]


def get_state(record: dict[str, Any]) -> str:
    """Return the conclusion of a run if it is completed, else its status."""
    return str(record["conclusion"] or record["status"])


def reporter(record: dict[str, Any]) -> str:
    who = record["reported_by"]
    return str(who.get("handle") or who["id"])


COLUMNS = (
    Column("id", kind="id"),
    Column("name", kind="name"),
    Column("state", get_state, kind="state"),
    Column("attempt", spare=2),
    Column("branch", spare=1),
    Column("seal_id", kind="id"),
    Column("created_at", kind="time"),
)
PAGE = (
    *COLUMNS,
    Column("reported_by", reporter),
    Column("started_at", kind="time"),
    Column("completed_at", kind="time"),
    Column("details_url"),
)
Id = Annotated[str, typer.Argument(metavar="ID", help="The run, by the first 4 or more digits of its id")]


@answers(COLUMNS, Run)
def list_runs(
    ctx: Ctx,
    seal: Annotated[
        str, typer.Option("--seal", "--commit", "-c", metavar="SEAL", help="Of this seal, branch or tag")
    ] = "",
    branch: Annotated[
        str, typer.Option("--branch", "-b", metavar="BRANCH", help="Of seals of this branch")
    ] = "",
    name: Annotated[
        str, typer.Option("--check", "-w", "--workflow", metavar="NAME", help="Of this check")
    ] = "",
    status: Annotated[
        Word | None,
        typer.Option(
            "--status",
            "-s",
            metavar="WORD",
            help=f"Of this status or conclusion: {', '.join(get_args(Word))}",
        ),
    ] = None,
    limit: Limit = 30,
) -> None:
    """List runs

    The newest run comes first.

    Examples:
    svc repo run list --branch main --status failure
    svc repo run list --seal 3f2a91 --json id,name,conclusion
    """
    repo = ctx.readable_repo
    query = require_valid(
        RunQuery(
            seal=resolve_ref(ctx.obj, repo, seal).head if seal else None,
            branch=branch or None,
            name=name or None,
            status=cast(Status, status) if status in get_args(Status) else None,
            conclusion=cast(Conclusion, status) if status in get_args(Conclusion) else None,
        )
    )
    rows = ctx.reader.items(runs.LIST, query, limit=limit, id=repo.id)
    ctx.out.rows(rows, COLUMNS, Run, empty="no runs")


@answers((*PAGE, Column("summary")), Run)
def view(
    ctx: Ctx,
    run: Id,
    exit_status: Annotated[
        bool, typer.Option("--exit-status", help="Exit 1 if it failed, 8 while it is not completed")
    ] = False,
) -> None:
    """Show a run

    Prints the report with its author and time, and the address of a page with more details.

    Examples:
    svc repo run view 0197c3
    """
    record = find(ctx, ctx.readable_repo, run)
    ctx.out.record(record, PAGE, Run, body=(record.summary or "").rstrip(), text="summary")
    if exit_status:
        exit_as(ctx, record)


def find(ctx: Ctx, repo: Repo, typed: str) -> Run:
    """Return the run whose id begins with `typed`. Raises NotFound if there is none. Raises UsageError if
    there are several, or if `typed` cannot be the beginning of an id."""
    if not re.fullmatch(rf"[0-9a-f]{{4,{ID_CHARS}}}", typed):
        raise UsageError(f"a run is named by 4 to {ID_CHARS} hex digits of its id; see: {LIST}")
    if len(typed) == ID_CHARS:
        with explained_not_found(repo, f"run {typed}", LIST):
            return ctx.reader.send(runs.GET, id=repo.id, run=typed)
    matches = list(ctx.reader.items(runs.LIST, RunQuery(prefix=typed), limit=2, id=repo.id))
    if len(matches) > 1:
        raise UsageError(f"several runs begin with {typed}; give more of the id: {LIST} --json id,name")
    if not matches:
        raise NotFound(f"{repo.full_name} has no run {typed}; see: {LIST}")
    return matches[0]


def exit_as(ctx: Ctx, run: Run) -> None:
    """Exit with EXIT_PENDING if the run is not completed, or with EXIT_FAILED if it failed. Otherwise
    return."""
    state = state_of(run.status, run.conclusion)
    if state == "pending":
        ctx.exit(EXIT_PENDING)
    if state in FAILED:
        ctx.exit(EXIT_FAILED)
