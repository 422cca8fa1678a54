"""The commands `svc repo checks list|enable|disable`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any

import typer

from localstore.core.errors import NotFound, UsageError
from localstore.core.model import check as checks
from localstore.core.model import ref as refs
from localstore.core.model.check import Check, SealCheck
from localstore.core.model.repo import Repo
from localstore.core.model.run import RunQuery, state_of
from localstore.core.model.sync import Event
from svc.cmd.frame.context import Ctx
from svc.cmd.frame.options import Limit
from svc.cmd.repo.freeing import confirm_merges, find_merges, sentence_of_merged
from svc.cmd.run.watch import (
    FIELDS,
    TABLE,
    Appear,
    ExitStatus,
    FailFast,
    Interval,
    Required,
    Timeout,
    Watch,
    follow,
    look,
    table_of,
)
from svc.console import Column, answers
from svc.flows.place.refs import explained_not_found, seal_of
from svc.flows.proposal.freed import Asked
from svc.flows.waiting.checks import APPEAR, INTERVAL, Options, Subject
from svc.http.checked import require_valid

LIST = "svc repo checks list"
ENABLED = (Column("name", kind="name"), Column("enabled"))
Name = Annotated[str, typer.Argument(help="The check, such as ci/test")]


@answers(FIELDS, SealCheck, table=TABLE)
def list_checks(
    ctx: Ctx,
    seal: Annotated[
        str, typer.Option("--seal", "--commit", "-c", metavar="SEAL", help="How they stand on this seal")
    ] = "",
    branch: Annotated[
        str, typer.Option("--branch", "-b", metavar="BRANCH", help="How they stand on its newest seal")
    ] = "",
    watch: Watch = False,
    required: Required = False,
    fail_fast: FailFast = False,
    interval: Interval = INTERVAL,
    timeout: Timeout = None,
    exit_status: ExitStatus = False,
    appear: Appear = APPEAR,
    limit: Limit = 100,
) -> None:
    """List checks, or their states on a seal

    Without --seal and --branch, the checks of the repository are listed, each with its last run on any seal.
    With --watch the command waits until all checks of the seal are completed, including enabled checks that
    have not reported yet. The exit code is then 0 if all passed, 1 if one failed or the branch moved
    meanwhile, and 8 if the time is over. If no check is enabled or has reported, it waits for a first one for
    a minute, or as long as --appear says, then exits with 1.

    Examples:
    svc repo checks list
    svc repo checks list --branch main --watch --timeout 900
    svc repo checks list --seal 3f2a91 --json name,state
    """
    if seal and branch:
        raise UsageError("--seal and --branch both name a seal; use one of them")
    if not seal and not branch:
        if watch or fail_fast or exit_status:
            raise UsageError("say of what: --seal SEAL or --branch BRANCH")
        repo = ctx.readable_repo
        rows = ctx.reader.items(checks.LIST, limit=limit, id=repo.id)
        table_of(ctx, _check_records(rows, required))
        return
    options = Options(
        required=required, fail_fast=fail_fast, interval=interval, timeout=timeout, appear=appear
    )
    repo = ctx.readable_repo
    subject = branch_subject(ctx, repo, branch) if branch else Subject(seal_of(ctx.obj, repo, seal))
    if watch:
        follow(ctx, repo, subject, options)
    else:
        answer = ctx.reader.send(checks.OF_SEAL, id=repo.id, seal_id=subject.seal)
        look(ctx, answer, options, subject, strict=False, exit_status=exit_status)


@answers(ENABLED, Check)
def enable(ctx: Ctx, name: Name) -> None:
    """Enable a check: it has to pass

    A branch whose protection requires checks accepts only seals on which the enabled checks have passed. A
    check may be enabled before it reports for the first time.

    Examples:
    svc repo checks enable ci/test
    """
    require_valid(RunQuery(name=name))
    check = ctx.api.send(checks.ENABLE, id=ctx.repo.id, name=name)
    ctx.out.done(f"Enabled check {check.name}", check, ENABLED, Check, value=check.name)


@answers(ENABLED)
def disable(ctx: Ctx, name: Name) -> None:
    """Disable a check

    The recorded runs of the check stay, and new runs are still accepted. A proposal that waits for the check
    with svc pr merge --auto merges at once: the command names it and asks first.

    Examples:
    svc repo checks disable ci/test
    """
    require_valid(RunQuery(name=name))
    repo = ctx.repo
    folded = name.casefold()

    def without(now: Asked) -> Asked:
        return now.with_checks([required for required in now.required if required.casefold() != folded])

    freed = find_merges(ctx, repo, without)
    confirm_merges(ctx, f"Disabling check {name} in {repo.full_name}", freed)
    with explained_not_found(repo, f"enabled check {name}", LIST):
        ctx.api.send(checks.DISABLE, id=repo.id, name=name)
    sentence = f"Disabled check {name}{sentence_of_merged(ctx, repo, freed)}"
    ctx.out.done(sentence, {"name": name, "enabled": False}, ENABLED, value=name)


def branch_subject(ctx: Ctx, repo: Repo, branch: str) -> Subject:
    """Return the newest seal of a branch, as a `Subject` whose checks can be watched. Raises NotFound if the
    branch has no seal."""
    api = ctx.reader

    def head() -> str | None:
        return api.send(refs.GET, id=repo.id, type="branch", name=branch).head

    def moves(event: Event) -> bool:
        named = event.data.get("branch" if event.kind == "seal.create" else "name")
        return event.kind in ("seal.create", "ref.update", "ref.delete") and named == branch

    with explained_not_found(repo, f"branch {branch}", "svc repo branch"):
        seal = head()
    if seal is None:
        raise NotFound(f"{branch} has no seals yet; make one: svc push -m MESSAGE")
    return Subject(seal, branch, head, moves)


def _check_records(items: Iterator[Check], required: bool) -> Iterator[dict[str, Any]]:
    """Yields the repository's checks, each with its last run on any seal. They have the same fields as the
    checks of a single seal. With `required`, only enabled checks are yielded. `state` is None for a check
    without a run."""
    for check in items:
        last = check.last
        if required and not check.enabled:
            continue
        yield {
            "name": check.name,
            "state": state_of(last.status, last.conclusion) if last else None,
            "required": check.enabled,
            "attempt": last.attempt if last else None,
            "summary": last.summary if last else None,
            "details_url": last.details_url if last else None,
            "seal_id": last.seal_id if last else None,
            "started_at": last.started_at if last else None,
            "completed_at": last.completed_at if last else None,
            "run_id": last.id if last else None,
        }
