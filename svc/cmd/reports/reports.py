"""The commands `svc repo reports …`."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Annotated, Any

import typer

from localstore.core.errors import UsageError
from localstore.core.model import report as reports
from localstore.core.model.advisory import Affected, Package, Range, RangeEvent
from localstore.core.model.limits import REPORTS
from localstore.core.model.repo import Repo
from localstore.core.model.report import (
    Decision,
    Report,
    ReportCreate,
    ReportDecision,
    ReportQuery,
    ReportState,
    Severity,
)
from localstore.core.paths import terminal_safe
from svc.cmd.access.shared import find_named
from svc.cmd.frame.context import Ctx
from svc.cmd.frame.options import Limit
from svc.cmd.frame.text_options import Body, BodyFile, body_of
from svc.console import Column, answers
from svc.http.checked import require_valid

LIST = "svc repo reports list"


def reporter(record: dict[str, Any]) -> str:
    who = record["reporter"]
    return str(who.get("handle") or who["id"])


COLUMNS = (
    Column("id", kind="id"),
    Column("severity"),
    Column("state", kind="state"),
    Column("title", kind="line"),
    Column("reporter", reporter, spare=1),
    Column("created_at", kind="time"),
)
PAGE = (*COLUMNS, Column("decided_at", kind="time"))
Id = Annotated[str, typer.Argument(metavar="ID", help="The report, by its id or how that begins")]


@answers(COLUMNS, Report)
def list_reports(
    ctx: Ctx,
    state: Annotated[ReportState | None, typer.Option("--state", "-s", help="That stand so")] = None,
    limit: Limit = 30,
) -> None:
    """List security reports

    The newest report comes first. The owner of the repository sees all reports. Others see their own, with
    the decision.

    Examples:
    svc repo reports list --state new
    svc repo reports list -R alice/notes
    svc repo reports list --json id,title,body
    """
    rows = ctx.api.items(reports.LIST, ReportQuery(state=state), limit=limit, id=ctx.repo.id)
    ctx.out.rows(rows, COLUMNS, Report, empty="no reports")


@answers((*PAGE, Column("body")), Report)
def view(ctx: Ctx, report: Id) -> None:
    """Show a security report

    Allowed for the owner of the repository, and for the author of the report.

    Examples:
    svc repo reports view 0197c3a1
    """
    record = _find(ctx, ctx.repo, report)
    ctx.out.record(record, PAGE, Report, body=record.body, text="body")


@answers(COLUMNS, Report)
def create(
    ctx: Ctx,
    title: Annotated[str, typer.Option("-t", "--title", metavar="TEXT", help="The title, on one line")] = "",
    body: Body = None,
    body_file: BodyFile = None,
    severity: Annotated[Severity, typer.Option("--severity", help="How bad it is")] = "medium",
) -> None:
    """Tell the owner of a repository in confidence what is wrong with it

    Describe the fault and how to reproduce it. Only the owner and you can read the report; your inbox shows
    the decision.

    Examples:
    svc repo reports create -t "Tokens in the log" -b "Line 3" -R alice/notes
    svc repo reports create -t "Overflow" -F report.md --severity high
    """
    text = body_of(body, body_file)
    if text is None:
        raise UsageError("say what is wrong: --body TEXT or --body-file FILE")
    if not title:
        raise UsageError("give the report a title: -t TEXT")
    request = require_valid(ReportCreate(title=title, body=text, severity=severity))
    repo = ctx.repo
    record = ctx.api.send(reports.CREATE, request, id=repo.id)
    ctx.out.done(f"Reported to the owner of {repo.full_name}", record, COLUMNS, Report, value=record.id)


@answers(COLUMNS, Report)
def decide(
    ctx: Ctx,
    report: Id,
    triaged: Annotated[bool, typer.Option("--triaged", help="It is being worked on")] = False,
    published: Annotated[bool, typer.Option("--published", help="An advisory tells everybody")] = False,
    dismissed: Annotated[bool, typer.Option("--dismissed", help="There is nothing in it; final")] = False,
    affected: Annotated[
        list[str] | None,
        typer.Option(
            "--affected", metavar="ECOSYSTEM:NAME[<VERSION]", help="What it is about; with --published"
        ),
    ] = None,
) -> None:
    """Decide a security report

    --published needs a server that has advisories. --affected names a package and its first fixed version.
    Without it, every version of the repository counts as affected.

    Examples:
    svc repo reports decide 0197c3a1 --triaged
    svc repo reports decide 0197c3a1 --published --affected "npm:left-pad<1.3.0"
    """
    given: dict[Decision, bool] = {"triaged": triaged, "published": published, "dismissed": dismissed}
    chosen = [name for name, is_chosen in given.items() if is_chosen]
    if len(chosen) != 1:
        raise UsageError("choose one of --triaged, --published and --dismissed")
    if affected and chosen != ["published"]:
        raise UsageError("--affected is said of what is published; add --published")
    body = require_valid(
        ReportDecision(decision=chosen[0], affected=[_package(package) for package in affected or ()])
    )
    repo = ctx.repo
    record = _find(ctx, repo, report)
    decided = ctx.api.send(reports.DECIDE, body, id=repo.id, report=record.id)
    ctx.out.done(
        f"Report {terminal_safe(decided.title)} is {decided.state}",
        decided,
        COLUMNS,
        Report,
        value=decided.id,
    )


def _package(typed: str) -> Affected:
    """Return the package and its first fixed version from `ECOSYSTEM:NAME[<VERSION]`. Raises UsageError for
    other texts."""
    match = re.fullmatch(r"([^:<\s]+):([^<\s]+)(?:<([^<\s]+))?", typed.strip())
    if match is None:
        raise UsageError(
            f"{terminal_safe(typed)} names no package; say ECOSYSTEM:NAME or ECOSYSTEM:NAME<VERSION"
        )
    package = Package(ecosystem=match[1], name=match[2])
    if match[3] is None:
        return Affected(package=package)
    events = [RangeEvent(introduced="0"), RangeEvent(fixed=match[3])]
    return Affected(package=package, ranges=[Range(type="ECOSYSTEM", events=events)])


def _find(ctx: Ctx, repo: Repo, typed: str) -> Report:
    """Return the report whose id begins with `typed`. Raises NotFound if there is none, UsageError if there
    are several."""

    def names(report: Report) -> Iterable[str]:
        return (report.id,)

    return find_named(
        ctx.api.items(reports.LIST, limit=REPORTS, id=repo.id), typed, names, "report", LIST, state=""
    )
