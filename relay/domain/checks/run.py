"""Rules of runs. The attempts of a check on a seal are numbered one after the other, and a completed run is
final.
"""

from __future__ import annotations

from typing import Any

from localstore.core.errors import Conflict, Invalid, NotFound, RateLimited
from localstore.core.model import limits
from localstore.core.model.base import Page
from localstore.core.model.run import (
    Conclusion,
    Run,
    RunCompleted,
    RunCreate,
    RunPatch,
    RunPending,
    RunQuery,
    Status,
)
from relay.base.clock import now_ms
from relay.base.ids import new_id
from relay.caller import View, account_name
from relay.db import paging
from relay.db.engine.database import Tx
from relay.domain.checks import check
from relay.domain.checks.rows import run as rows
from relay.domain.checks.rows.run import RunRow
from relay.domain.checks.wire import to_wire

MINUTE = 60_000
_STEP: dict[str, int] = {"queued": 0, "in_progress": 1, "completed": 2}


async def page(view: View, query: RunQuery) -> Page[Run]:
    """Runs, newest first"""
    filters: dict[str, Any] = {
        name: value
        for name in ("prefix", "seal", "branch", "name", "status", "conclusion")
        if (value := getattr(query, name)) is not None
    }
    if "name" in filters:
        filters["name"] = filters["name"].casefold()
    keyset = rows.keyset_of(frozenset(filters))
    async with view.read() as tx:
        return await paging.read_page(tx, keyset, query, _row_to_wire, of_repo=view.repo.id, **filters)


async def get(view: View, run_id: str) -> Run:
    """One run"""
    async with view.read() as tx:
        return to_wire(await _find(tx, view, run_id))


async def create(view: View, body: RunCreate) -> Run:
    """Record a run of a check on a seal: its first attempt, or the next one"""
    status, conclusion = _outcome_after(body.status or "queued", body.status, body.conclusion)
    async with view.write(account_name(view.me.account_id)) as tx:
        branch = await tx.value(rows.BRANCH_OF_SEAL, of_repo=view.repo.id, of_seal=body.seal_id)
        if branch is None:
            raise Invalid(
                f"{body.seal_id[:12]} is not a seal of {view.repo.full_name}; see: svc log",
                pointer="/seal_id",
            )
        return await _record(tx, view, "run.create", body, branch, status, conclusion)


async def rerun(view: View, run_id: str) -> Run:
    """Request another attempt of a completed run

    The new attempt is queued; an event tells runners of it.
    """
    async with view.write(account_name(view.me.account_id)) as tx:
        old = await _find(tx, view, run_id)
        newest = await _find_newest(tx, view, old.seal_id, old.name)
        if newest is not None and newest.status != "completed":
            raise RunPending(
                f"attempt {newest.attempt} of {newest.name} is not completed yet; "
                f"see: svc repo run view {newest.id}",
                run=newest.id,
            )
        again = RunCreate(name=old.name, seal_id=old.seal_id)
        return await _record(tx, view, "run.rerun", again, old.branch, "queued", None)


async def update(view: View, run_id: str, patch: RunPatch) -> Run:
    """Update the state of a run that is not completed

    The state goes from queued to in_progress to completed, or from queued to completed at once.
    """
    async with view.write() as tx:
        old = await _find_unfinished(tx, view, run_id)
        status, conclusion = _outcome_after(old.status, patch.status, patch.conclusion)
        if _STEP[status] < _STEP[old.status]:
            raise Invalid(f"the run is {old.status}, and does not go back to {status}", pointer="/status")
        return await _change(tx, view, "run.update", old, status, conclusion, patch)


async def cancel(view: View, run_id: str) -> Run:
    """Complete a run as cancelled"""
    async with view.write() as tx:
        old = await _find_unfinished(tx, view, run_id)
        return await _change(tx, view, "run.cancel", old, "completed", "cancelled", RunPatch())


def _row_to_wire(row: Any) -> Run:
    return to_wire(rows.to_row(row))


def _outcome_after(
    was: Status, status: Status | None, conclusion: Conclusion | None
) -> tuple[Status, Conclusion | None]:
    """The (status, conclusion) of a run after a change. `was`: the status before the change. `status` and
    `conclusion`: what the change sets; a conclusion completes the run."""
    if conclusion is not None:
        if status not in (None, "completed"):
            raise Invalid(f"a run with a conclusion is completed, not {status}", pointer="/status")
        return "completed", conclusion
    if status == "completed":
        raise Invalid("a completed run has a conclusion, such as success or failure", pointer="/conclusion")
    return status or was, None


async def _find(tx: Tx, view: View, run_id: str) -> RunRow:
    row = await tx.one(rows.ONE, of_repo=view.repo.id, of_run=run_id)
    if row is None:
        raise NotFound
    return rows.to_row(row)


async def _find_unfinished(tx: Tx, view: View, run_id: str) -> RunRow:
    run = await _find(tx, view, run_id)
    if run.status == "completed":
        raise RunCompleted(
            f"attempt {run.attempt} of {run.name} is completed ({run.conclusion}), which is final; "
            f"for another one run: svc repo run rerun {run.id}",
            attempt=run.attempt,
        )
    return run


async def _find_newest(tx: Tx, view: View, seal_id: str, name: str) -> RunRow | None:
    row = await tx.one(rows.NEWEST_OF_NAME, of_repo=view.repo.id, of_seal=seal_id, folded=name.casefold())
    return None if row is None else rows.to_row(row)


async def _require_room(tx: Tx, view: View, seal_id: str, again: bool) -> None:
    """Check that one more run may be recorded on the seal. Raises RateLimited if the account recorded too
    many runs in the last minute. Raises Conflict if the seal has too many runs, or too many checks already.
    `again`: the check has run on this seal before, so the number of checks does not grow."""
    who = {"who": view.me.account_id, "since": now_ms() - MINUTE}
    limited = view.node.limiter.enabled
    if limited and await tx.value(rows.REPORTED_SINCE, **who) >= limits.RUNS_A_MINUTE:
        raise RateLimited(
            f"{limits.RUNS_A_MINUTE} runs within a minute are enough; try again later",
            retry_after=60,
            limit=limits.RUNS_A_MINUTE,
        )
    counted = await tx.one(rows.IN_SEAL, of_repo=view.repo.id, of_seal=seal_id)
    runs, names = counted if counted is not None else (0, 0)
    if runs >= limits.SEAL_RUNS:
        raise Conflict(f"{seal_id[:12]} has {limits.SEAL_RUNS} runs, and no seal has more")
    if not again and names >= limits.SEAL_CHECKS:
        raise Conflict(f"{seal_id[:12]} has {limits.SEAL_CHECKS} checks, and no seal has more")


async def _record(
    tx: Tx, view: View, kind: str, body: RunCreate, branch: str, status: str, conclusion: str | None
) -> Run:
    """Record the next attempt of a check on a seal, announce an event of the kind `kind`, and return the
    run."""
    before = await _find_newest(tx, view, body.seal_id, body.name)
    await _require_room(tx, view, body.seal_id, before is not None)
    now, run_id = now_ms(), new_id()
    if before is not None:
        await tx.run(rows.SUPERSEDE, of_repo=view.repo.id, of_run=before.id)
    await tx.run(
        rows.INSERT,
        id=run_id,
        repo_id=view.repo.id,
        seal_id=body.seal_id,
        branch=branch,
        folded=body.name.casefold(),
        name=body.name,
        attempt=before.attempt + 1 if before else 1,
        newest=True,
        status=status,
        conclusion=conclusion,
        summary=body.summary,
        details_url=body.details_url,
        reporter_id=view.me.account_id,
        created_at=now,
        started_at=now if status == "in_progress" else None,
        completed_at=now if status == "completed" else None,
    )
    await check.record_report(tx, view, body.name, run_id)
    return await _announce_change(tx, view, kind, run_id)


async def _change(
    tx: Tx, view: View, kind: str, old: RunRow, status: str, conclusion: str | None, patch: RunPatch
) -> Run:
    now = now_ms()
    await tx.run(
        rows.EDIT,
        of_repo=view.repo.id,
        of_run=old.id,
        new_status=status,
        new_conclusion=conclusion,
        new_summary=old.summary if patch.summary is None else patch.summary,
        new_details_url=old.details_url if patch.details_url is None else patch.details_url,
        new_started_at=old.started_at or (now if status == "in_progress" else None),
        new_completed_at=now if status == "completed" else None,
    )
    return await _announce_change(tx, view, kind, old.id)


async def _announce_change(tx: Tx, view: View, kind: str, run_id: str) -> Run:
    """Announce that a run has changed, and return the run. Updates the combined state of the run's seal, and
    writes an event of the kind `kind` with the state of the run."""
    run = await _find(tx, view, run_id)
    of_seal = {"of_repo": view.repo.id, "of_seal": run.seal_id}
    counted = await tx.one(rows.COUNTED, **of_seal)
    total, passed, failed, pending = counted if counted is not None else (0, 0, 0, 0)
    values = {"new_total": total, "new_passed": passed, "new_failed": failed, "new_pending": pending}
    if await tx.run(rows.ROLLUP_UPDATE, **of_seal, **values) == 0:
        await tx.run(
            rows.ROLLUP_INSERT,
            repo_id=view.repo.id,
            seal_id=run.seal_id,
            total=total,
            passed=passed,
            failed=failed,
            pending=pending,
        )
    await view.node.hub.announce(
        tx,
        view.repo.id,
        kind,
        run=run.id,
        seal=run.seal_id,
        name=run.name,
        attempt=run.attempt,
        status=run.status,
        conclusion=run.conclusion,
    )
    return to_wire(run)
