"""The command `svc pr checks`."""

from __future__ import annotations

from localstore.core.model import check as checks
from localstore.core.model import proposal as proposals
from localstore.core.model.check import SealCheck
from localstore.core.model.repo import Repo
from localstore.core.model.sync import Event
from svc.cmd.frame.context import Ctx
from svc.cmd.pr.words import Number, find
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
)
from svc.console import answers
from svc.flows.waiting.checks import APPEAR, INTERVAL, Options, Subject


@answers(FIELDS, SealCheck, table=TABLE)
def list_checks(
    ctx: Ctx,
    number: Number = "",
    watch: Watch = False,
    required: Required = False,
    fail_fast: FailFast = False,
    interval: Interval = INTERVAL,
    timeout: Timeout = None,
    exit_status: ExitStatus = False,
    appear: Appear = APPEAR,
) -> None:
    """Show, or watch, the checks of a proposal

    Shows the checks of its newest version. The exit code is 1 if a check failed and, with --exit-status, 8 if
    one is pending. With --watch it waits until all checks are completed, including enabled checks that have
    not reported yet. The exit code is then 0 if all passed, 1 if one failed or the proposal has a newer
    version, and 8 if the time is over. If no check is enabled or has reported, it waits for a first one for a
    minute, or as long as --appear says, then exits with 1.

    Examples:
    svc pr checks 12
    svc pr checks 12 --watch --fail-fast --timeout 900
    """
    options = Options(
        required=required, fail_fast=fail_fast, interval=interval, timeout=timeout, appear=appear
    )
    repo, subject = proposal_subject(ctx, number)
    if watch:
        follow(ctx, repo, subject, options)
        return
    answer = ctx.reader.send(checks.OF_SEAL, id=repo.id, seal_id=subject.seal)
    look(ctx, answer, options, subject, strict=True, exit_status=exit_status)


def proposal_subject(ctx: Ctx, typed: str) -> tuple[Repo, Subject]:
    """Return the repository, and the proposal's newest seal as a `Subject` whose checks can be watched.
    Raises NotFound if there is no such proposal."""
    api = ctx.reader
    repo, proposal = find(ctx, typed, session=False)
    n = proposal.number

    def head() -> str | None:
        return api.send(proposals.GET, id=repo.id, n=str(n)).head_seal

    def moves(event: Event) -> bool:
        return event.kind == "proposal.push" and event.number == n

    return repo, Subject(proposal.head_seal, f"#{n}", head, moves)
