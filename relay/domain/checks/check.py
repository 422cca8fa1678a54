"""Rules of checks: the checks that a repository has, those that are required, and their states on seals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from localstore.core import validation
from localstore.core.errors import NotFound
from localstore.core.model import limits
from localstore.core.model.base import Page, PageQuery
from localstore.core.model.check import Check, Rollup, SealCheck, SealChecks
from localstore.core.model.run import RunQuery, state_of
from relay.base.clock import rfc3339_or_none
from relay.caller import View
from relay.db import paging
from relay.db.engine.database import Row, Tx
from relay.domain.checks.rows import check as rows
from relay.domain.checks.rows import run as runs
from relay.domain.checks.rows.check import CheckRow
from relay.domain.checks.rows.run import RunRow
from relay.domain.checks.wire import to_wire


async def page(view: View, query: PageQuery) -> Page[Check]:
    """Checks that are enabled or have reported, sorted by name"""
    async with view.read() as tx:
        return await paging.read_page(tx, rows.PAGE, query, _to_wire, of_repo=view.repo.id)


async def enable(view: View, name: str) -> Check:
    """Enable a check: merges wait for it where the rule of the base branch asks for checks

    A check that has never reported can be enabled too.
    """
    checked_name = validation.check_members(RunQuery(name=name)).name or name
    async with view.write() as tx:
        of_check = {"of_repo": view.repo.id, "of_check": checked_name.casefold()}
        old = await _find(tx, of_check)
        if old is None or not old.enabled:
            used = await tx.value(rows.COUNT_ENABLED, of_repo=view.repo.id)
            view.require_room(used, limits.CHECKS_ENABLED, "enabled checks")
            if old is None:
                await _insert_check(tx, view, checked_name, True)
            else:
                await tx.run(rows.SET, **of_check, new_name=checked_name, new_enabled=True)
        await view.node.hub.announce(tx, view.repo.id, "check.enable", name=checked_name)
        row = await _find(tx, of_check)
        if row is None:
            raise NotFound
        return _row_to_wire(row)


async def disable(view: View, name: str) -> None:
    """Disable a check

    Its reports stay. Raises NotFound unless it is enabled.
    """
    async with view.write() as tx:
        of_check = {"of_repo": view.repo.id, "of_check": name.casefold()}
        old = await _find(tx, of_check)
        if old is None or not old.enabled:
            raise NotFound
        if old.last is None:
            await tx.run(rows.DELETE, **of_check)
        else:
            await tx.run(rows.SET, **of_check, new_name=old.name, new_enabled=False)
        await view.node.hub.announce(tx, view.repo.id, "check.disable", name=old.name)


async def of_seal(view: View, seal_id: str) -> SealChecks:
    """States of the checks on a seal

    Includes checks that reported, and enabled checks that did not.
    """
    values = {"of_repo": view.repo.id, "of_seal": seal_id}
    async with view.read(snapshot=True) as tx:
        if await tx.value(runs.BRANCH_OF_SEAL, **values) is None:
            raise NotFound
        required = dict(map(tuple, await tx.all(rows.ENABLED, of_repo=view.repo.id)))
        reports = {row.name.casefold(): row for row in map(runs.to_row, await tx.all(runs.OF_SEAL, **values))}
    items = [
        _run_to_wire(seal_id, reports[folded], folded in required)
        if folded in reports
        else _missing_to_wire(seal_id, required[folded])
        for folded in sorted({*reports, *required})
    ]
    return SealChecks(seal_id=seal_id, rollup=_roll_up(items), items=items)


# --- for proposals, protection and merges


async def combine_states(tx: Tx, repo_id: str, seals: Sequence[str]) -> dict[str, Rollup]:
    """Combine the states of the checks of each seal. An enabled check without a report counts as pending.
    Runs at most three statements, for any number of seals."""
    if not seals:
        return {}
    enabled = len(await tx.all(rows.ENABLED, of_repo=repo_id))
    totals = {row[0]: row[1:] for row in await tx.all(rows.ROLLUPS, of_repo=repo_id, seals=list(seals))}
    reported: dict[str, int] = {}
    if enabled:
        counts = await tx.all(rows.REPORTED_ON, of_repo=repo_id, seals=list(seals))
        reported = dict(map(tuple, counts))
    answer = {}
    for seal in seals:
        total, passed, failed, pending = totals.get(seal, (0, 0, 0, 0))
        awaited = enabled - reported.get(seal, 0)
        answer[seal] = Rollup(total=total + awaited, passed=passed, failed=failed, pending=pending + awaited)
    return answer


async def find_unmet(tx: Tx, repo_id: str, seals: Sequence[str]) -> dict[str, list[str]]:
    """Find the enabled checks that have not passed on each seal. Returns their names by seal. Runs two
    statements, for any number of seals."""
    enabled = [tuple(row) for row in await tx.all(rows.ENABLED, of_repo=repo_id)]
    passed: set[tuple[str, str]] = set()
    if enabled and seals:
        pairs = await tx.all(rows.PASSED, of_repo=repo_id, seals=list(seals))
        passed = {(seal, folded) for seal, folded in pairs}
    return {seal: [name for folded, name in enabled if (seal, folded) not in passed] for seal in seals}


# --- for runs


async def record_report(tx: Tx, view: View, name: str, run_id: str) -> None:
    """Store which run of a check is its newest, and add the check itself if it is new."""
    of_check = {"of_repo": view.repo.id, "of_check": name.casefold()}
    if await tx.run(rows.REPORT, **of_check, new_run=run_id) == 0:
        await _insert_check(tx, view, name, False, run_id)


async def _insert_check(tx: Tx, view: View, name: str, enabled: bool, last: str | None = None) -> None:
    """Add a check. If the repository has as many checks as allowed, the one whose last report is oldest is
    removed. `last`: id of the run that reported."""
    if await tx.value(rows.COUNT, of_repo=view.repo.id) >= limits.CHECKS_KNOWN:
        stalest = await tx.value(rows.STALEST, of_repo=view.repo.id)
        await tx.run(rows.DELETE, of_repo=view.repo.id, of_check=stalest)
    await tx.run(
        rows.INSERT,
        repo_id=view.repo.id,
        folded=name.casefold(),
        name=name,
        enabled=enabled,
        last_run=last,
    )


async def _find(tx: Tx, of_check: Mapping[str, str]) -> CheckRow | None:
    columns = await tx.one(rows.ONE, **of_check)
    return None if columns is None else rows.to_check(columns)


def _to_wire(columns: Row) -> Check:
    return _row_to_wire(rows.to_check(columns))


def _row_to_wire(row: CheckRow) -> Check:
    last = None if row.last is None else to_wire(row.last)
    return Check(name=row.name, enabled=row.enabled, last=last)


def _run_to_wire(seal_id: str, run: RunRow, required: bool) -> SealCheck:
    return SealCheck(
        name=run.name,
        state=state_of(run.status, run.conclusion),
        required=required,
        attempt=run.attempt,
        summary=run.summary,
        details_url=run.details_url,
        seal_id=seal_id,
        started_at=rfc3339_or_none(run.started_at),
        completed_at=rfc3339_or_none(run.completed_at),
        run_id=run.id,
    )


def _missing_to_wire(seal_id: str, name: str) -> SealCheck:
    return SealCheck(
        name=name,
        state="pending",
        required=True,
        attempt=0,
        summary=None,
        details_url=None,
        seal_id=seal_id,
        started_at=None,
        completed_at=None,
        run_id=None,
    )


def _roll_up(items: Sequence[SealCheck]) -> Rollup:
    def count(*states: str) -> int:
        return sum(item.state in states for item in items)

    return Rollup(
        total=len(items),
        passed=count("pass", "skip"),
        failed=count("fail", "cancel"),
        pending=count("pending"),
    )
