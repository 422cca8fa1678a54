"""`svc repo run watch`, and functions with which other commands watch checks."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Annotated, Any

import typer

from localstore.core.errors import EXIT_FAILED, EXIT_PENDING
from localstore.core.model.check import SealCheck, SealChecks
from localstore.core.model.repo import Repo
from localstore.core.model.run import state_of
from svc.cmd.frame.context import Ctx
from svc.cmd.run.run import Id, find
from svc.console import Column, answers
from svc.console.live_table import LiveTable
from svc.flows.waiting.checks import (
    FAILED,
    INTERVAL,
    Options,
    Subject,
    Verdict,
    Watcher,
    decide_outcome,
    select_counted,
)

NAMED = 5  # checks that a sentence names


def format_duration(record: dict[str, Any]) -> str:
    """Return the duration of a run, such as `1 min 12 s`. "" while it is unknown."""
    if not record["started_at"] or not record["completed_at"]:
        return ""
    began, ended = (datetime.fromisoformat(record[name]) for name in ("started_at", "completed_at"))
    seconds = max(round((ended - began).total_seconds()), 0)
    return f"{seconds // 60} min {seconds % 60} s" if seconds >= 60 else f"{seconds} s"


TABLE = (
    Column("name", kind="name"),
    Column("state", kind="state"),
    Column("required", spare=3),
    Column("attempt", spare=2),
    Column("took", format_duration, spare=4),
    Column("summary", kind="line"),
    Column("details_url", spare=1),
)
FIELDS = tuple(
    Column(name)
    for name in (
        "name",
        "state",
        "required",
        "attempt",
        "summary",
        "details_url",
        "seal_id",
        "started_at",
        "completed_at",
    )
)

Required = Annotated[bool, typer.Option("--required", help="Look at enabled checks alone")]
FailFast = Annotated[bool, typer.Option("--fail-fast", help="End at the first failure, with --watch")]
Interval = Annotated[
    float,
    typer.Option("--interval", "-i", min=1, metavar="SECONDS", help="Between two looks without a socket"),
]
Timeout = Annotated[
    float | None,
    typer.Option("--timeout", min=0, metavar="SECONDS", help="Wait no longer, and exit 8"),
]
Appear = Annotated[
    float,
    typer.Option(
        "--appear", min=0, metavar="SECONDS", help="With --watch: how long to wait for a first check"
    ),
]
Watch = Annotated[bool, typer.Option("--watch", help="Wait until all are done; exit 0, 1 or 8")]
ExitStatus = Annotated[bool, typer.Option("--exit-status", help="Exit 1 if one failed, 8 if one is pending")]


@answers(FIELDS, SealCheck, table=TABLE)
def watch(ctx: Ctx, run: Id, timeout: Timeout = None, interval: Interval = INTERVAL) -> None:
    """Wait until a run is completed

    The exit code is 0 if the run passed or was skipped, 1 if it failed or was cancelled, and 8 if it is not
    completed in time. If its check is run again meanwhile, the newest attempt counts.

    Examples:
    svc repo run watch 0197c3 --timeout 600
    """
    repo = ctx.readable_repo
    record = find(ctx, repo, run)
    state = state_of(record.status, record.conclusion)
    if state == "pending":
        options = Options(timeout=timeout, interval=interval, only=record.name)
        follow(ctx, repo, Subject(record.seal_id), options)
        return
    check = SealCheck(
        name=record.name,
        state=state,
        required=False,
        attempt=record.attempt,
        summary=record.summary,
        details_url=record.details_url,
        seal_id=record.seal_id,
        started_at=record.started_at,
        completed_at=record.completed_at,
        run_id=record.id,
    )
    table_of(ctx, [check])
    leave(ctx, Verdict("failed" if state in FAILED else "passed", [check]), Subject(record.seal_id))


def table_of(ctx: Ctx, items: Iterable[Any]) -> None:
    """Print checks as a table, or with all their fields if an option such as `--json` asks for data."""
    columns = FIELDS if ctx.out.format.as_data else TABLE
    ctx.out.rows(items, columns, SealCheck, empty="no checks")


def follow(ctx: Ctx, repo: Repo, subject: Subject, options: Options) -> None:
    """Watch the checks of a seal in a table that is redrawn, until it is decided whether they passed. Then
    print the result, and exit with its code."""
    table = LiveTable(ctx.out, TABLE)
    verdict = Watcher(ctx.reader, repo.id, subject, options, table.show, table.note).run()
    if ctx.out.format.as_data:
        table_of(ctx, verdict.items)
    leave(ctx, verdict, subject)


def look(
    ctx: Ctx, answer: SealChecks, options: Options, subject: Subject, *, strict: bool, exit_status: bool
) -> None:
    """Print the checks once. If one failed, and `strict` or `exit_status` is True, exit with 1. If one is
    pending, and `exit_status` is True, exit with 8."""
    items = select_counted(answer.items, options)
    table_of(ctx, items)
    outcome = decide_outcome(items, Options(fail_fast=True)) or "pending"
    if exit_status or (strict and outcome == "failed"):
        leave(ctx, Verdict(outcome, items), subject)


def leave(ctx: Ctx, verdict: Verdict, subject: Subject) -> None:
    """Print on stderr whether the checks passed. If they did not, exit with the code of the result."""
    ctx.out.note(sentence_of(verdict, subject))
    if verdict.outcome != "passed":
        ctx.exit(EXIT_PENDING if verdict.outcome == "pending" else EXIT_FAILED)


def sentence_of(verdict: Verdict, subject: Subject) -> str:
    """Return a sentence that says whether the checks of a seal passed, or which of them did not."""
    of = f"{subject.seal[:12]} ({subject.name})" if subject.name else subject.seal[:12]
    total = len(verdict.items)
    if verdict.outcome == "stale":
        now = f"moved to {verdict.moved_to[:12]}" if verdict.moved_to else "is gone"
        return f"STALE: {subject.name} {now}, and these are the checks of {subject.seal[:12]}; watch again"
    if total == 0:
        return (
            f"no check has reported on {of}, so nothing has looked at it; to have one waited for: "
            "svc repo checks enable NAME"
        )
    if verdict.outcome == "passed":
        return f"{_count_of(total, total)} passed on {of}"
    states = FAILED if verdict.outcome == "failed" else ("pending",)
    some = [_name_check(check) for check in verdict.items if check.state in states]
    more = f" and {len(some) - NAMED} more" if len(some) > NAMED else ""
    what = "failed" if verdict.outcome == "failed" else "not done"
    return f"{_count_of(len(some), total)} {what} on {of}: {', '.join(some[:NAMED])}{more}"


def _count_of(some: int, total: int) -> str:
    if total == 1:
        return "1 check"
    return f"all {total} checks" if some == total else f"{some} of {total} checks"


def _name_check(check: SealCheck) -> str:
    if check.state == "pending" and check.attempt == 0:
        return f"{check.name} (has not reported)"
    return f"{check.name} (cancelled)" if check.state == "cancel" else check.name
