"""The commands `svc repo run create|update|cancel|rerun`."""

from __future__ import annotations

from typing import Annotated, get_args

import typer

from localstore.core.errors import UsageError
from localstore.core.model import run as runs
from localstore.core.model.repo import Repo
from localstore.core.model.run import Conclusion, Run, RunCreate, RunPatch, Status
from svc.cmd.frame.context import Ctx
from svc.cmd.run.run import COLUMNS, Id, find, get_state
from svc.console import answers
from svc.flows.place.refs import default_ref, last_seal, seal_of
from svc.http.checked import require_valid

Stands = Annotated[
    Status | None, typer.Option("--status", help="How far it is; with --conclusion it is completed")
]
Ended = Annotated[Conclusion | None, typer.Option("--conclusion", help="How it ended, for good")]
Text = Annotated[str | None, typer.Option("--summary", metavar="TEXT", help="What there is to say, in short")]
Details = Annotated[
    str | None, typer.Option("--details-url", metavar="URL", help="The page that says more, by http or https")
]


@answers(COLUMNS, Run)
def create(
    ctx: Ctx,
    name: Annotated[str, typer.Argument(help="The check, such as ci/test")],
    seal: Annotated[
        str,
        typer.Option("--seal", "--commit", metavar="SEAL", help="The seal, or a branch or tag"),
    ] = "",
    branch: Annotated[str, typer.Option("--branch", "-b", metavar="BRANCH", help="Its newest seal")] = "",
    status: Stands = None,
    conclusion: Ended = None,
    summary: Text = None,
    details_url: Details = None,
) -> None:
    """Record a run of a check on a seal

    Without --seal and --branch, the run is recorded on the last seal of this folder. A further run of the
    same check on the same seal is the next attempt. Without --status and --conclusion the run is queued.

    Examples:
    svc repo run create ci/test --details-url https://ci.example/42
    svc repo run create ci/test --branch main
    svc repo run create ci/lint --conclusion success --summary "0 findings"
    """
    if seal and branch:
        raise UsageError("--seal and --branch both name a seal; use one of them")
    _require_possible(status, conclusion)
    require_valid(RunPatch(summary=summary, details_url=details_url))
    require_valid(runs.RunQuery(name=name))
    repo = ctx.repo
    body = RunCreate(
        name=name,
        seal_id=_seal(ctx, repo, seal or branch),
        status=status,
        conclusion=conclusion,
        summary=summary,
        details_url=details_url,
    )
    run = ctx.api.send(runs.CREATE, require_valid(body), id=repo.id)
    _print_done(ctx, "Recorded", run)


@answers(COLUMNS, Run)
def update(
    ctx: Ctx,
    run: Id,
    status: Stands = None,
    conclusion: Ended = None,
    summary: Text = None,
    details_url: Details = None,
) -> None:
    """Update a run that is not completed

    Examples:
    svc repo run update 0197c3 --status in_progress
    svc repo run update 0197c3 --conclusion failure --summary "2 of 80 failed"
    """
    _require_possible(status, conclusion)
    patch = RunPatch(status=status, conclusion=conclusion, summary=summary, details_url=details_url)
    if patch == RunPatch():
        raise UsageError("say what changed: --status, --conclusion, --summary or --details-url")
    require_valid(patch)
    repo = ctx.repo
    changed = ctx.api.send(runs.UPDATE, patch, id=repo.id, run=find(ctx, repo, run).id)
    _print_done(ctx, "Updated", changed)


@answers(COLUMNS, Run)
def cancel(ctx: Ctx, run: Id) -> None:
    """Complete a run as cancelled

    The command itself does not stop anything. The program that runs the check gets an event.

    Examples:
    svc repo run cancel 0197c3
    """
    repo = ctx.repo
    changed = ctx.api.send(runs.CANCEL, id=repo.id, run=find(ctx, repo, run).id)
    _print_done(ctx, "Cancelled", changed)


@answers(COLUMNS, Run)
def rerun(ctx: Ctx, run: Id) -> None:
    """Request another attempt of a completed run

    The new attempt is queued, and the program that runs the check gets an event.

    Examples:
    svc repo run rerun 0197c3
    """
    repo = ctx.repo
    queued = ctx.api.send(runs.RERUN, id=repo.id, run=find(ctx, repo, run).id)
    _print_done(ctx, "Queued", queued)


def _seal(ctx: Ctx, repo: Repo, typed: str) -> str:
    if typed:
        return seal_of(ctx.obj, repo, typed)
    linked = ctx.obj.linked
    own_seal = last_seal(ctx.obj) if linked and linked[1].repo_id == repo.id else None
    return own_seal or seal_of(ctx.obj, repo, default_ref(ctx.obj, repo))


def _require_possible(status: Status | None, conclusion: Conclusion | None) -> None:
    if conclusion is not None and status not in (None, "completed"):
        raise UsageError(f"a run with a conclusion is completed, not {status}; omit --status")
    if status == "completed" and conclusion is None:
        raise UsageError(f"say how it ended: --conclusion {'|'.join(get_args(Conclusion))}")


def _print_done(ctx: Ctx, verb: str, run: Run) -> None:
    state = get_state({"conclusion": run.conclusion, "status": run.status})
    attempt = f", attempt {run.attempt}" if run.attempt > 1 else ""
    sentence = f"{verb} run {run.id[:12]} of {run.name} on {run.seal_id[:12]}: {state}{attempt}"
    ctx.out.done(sentence, run, COLUMNS, Run, value=run.id)
