"""Periodic work of a node: deletes expired rows, purges deleted repositories, adds checkpoints of quiet
branches.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import msgspec

from localstore.core.model import limits
from relay.base.clock import now_ms
from relay.base.logs import logger
from relay.caller import repo_name
from relay.capacity import quota
from relay.db import job as jobs
from relay.db.engine.database import Database, Row, Statement
from relay.db.live import event as events
from relay.domain.forking import holding
from relay.domain.history import live_updates
from relay.domain.identity.audit import OPERATOR
from relay.domain.live import checkpoint
from relay.domain.merging import trial
from relay.domain.proposal import branches, elsewhere, placing, versions
from relay.domain.repository.ref import FREE
from relay.domain.upkeep.rows import upkeep as rows
from relay.events.jobs import SECOND, Pace
from relay.node import Node

JOBS_KEPT = 7 * 24 * 3600_000  # milliseconds that a finished job, or the error of a failed one, can be read
PURGED_AT_ONCE = 20
DAY = 24 * 3600_000
SESSIONS_KEPT = 2 * DAY  # after their end
SWEPT_AT_ONCE, SWEPT = 2000, 500_000  # rows of one kind: in a transaction, in an hour
AUDIT_BELOW = 1 << 53  # subtracted from the numbers of imported audit rows
LIVE_KEPT = 2 * DAY  # events of live edits
DELIVERIES_KEPT = 7 * DAY  # of webhooks, once they are over


class PurgeFailed(Exception):
    """Raised if some repositories could not be purged. The reasons are in the log."""


def register(node: Node, collect: Callable[[], None]) -> None:
    """Register the hourly and daily work. Call it before the node's jobs start. `collect`: a function that
    starts the collector."""

    async def collect_job(_: dict[str, Any]) -> None:
        collect()  # runs in the background

    async def sweep_job(_: dict[str, Any]) -> None:
        await delete_expired(node)

    async def purge_job(_: dict[str, Any]) -> None:
        await purge_deleted(node)

    async def checkpoint_job(data: dict[str, Any]) -> None:
        if "branch_id" in data:  # jobs of earlier versions name none
            await checkpoint.if_idle(node, data["branch_id"])

    async def free_job(_: dict[str, Any]) -> None:
        await free_frontiers(node)

    async def join_job(data: dict[str, Any]) -> None:
        await live_updates.join(node, data)

    async def version_job(data: dict[str, Any]) -> None:
        await placing.settle_job(node, data)
        await trial.version_job(node, data["repo_id"], data["number"])

    async def trials_job(data: dict[str, Any]) -> None:
        await trial.run_trials(node, data)

    async def head_job(data: dict[str, Any]) -> None:
        await elsewhere.follow(node, data)

    node.jobs.register(elsewhere.JOB, head_job, Pace(slots=2, deadline=60 * SECOND))
    node.jobs.register(versions.JOB, version_job, Pace(slots=2, deadline=60 * SECOND))
    node.jobs.register(branches.TRIALS, trials_job, Pace(slots=1, deadline=120 * SECOND))
    node.jobs.register("checkpoint", checkpoint_job, Pace(slots=4, deadline=30 * SECOND))
    node.jobs.register(live_updates.KIND, join_job, Pace(slots=2, deadline=60 * SECOND))
    node.jobs.register(FREE, free_job, Pace(slots=1, deadline=1800 * SECOND), hourly=True)
    node.jobs.register("sweep", sweep_job, Pace(slots=1, deadline=1800 * SECOND), hourly=True)
    node.jobs.register("purge", purge_job, Pace(slots=1, deadline=1800 * SECOND), hourly=True)
    node.jobs.register("gc", collect_job, Pace(slots=1, deadline=60 * SECOND), daily=True)


async def delete_expired(node: Node) -> int:
    """Delete rows that have expired or are of no more use. These are nonces, keys, challenges, codes, tokens,
    prepared seals, old names of repositories, events, frames, webhook deliveries, ended sessions, guests
    without a session with their documents, and old jobs. Deletes at most SWEPT rows of each kind. Returns the
    number of deleted rows."""
    now = now_ms()
    deleted = 0
    for statement in rows.EXPIRED:
        deleted += await _sweep_batches(node, statement, now=now)
    deleted += await _sweep_batches(node, rows.SESSIONS, before=now - SESSIONS_KEPT)
    for statement in rows.GUEST_DOCUMENTS:
        deleted += await _sweep_batches(node, statement, before=now - SESSIONS_KEPT)
    deleted += await _sweep_batches(node, rows.GUESTS, before=now - SESSIONS_KEPT)
    deleted += await _sweep_batches(node, rows.OF_NO_REPO, before=now - node.config.audit_days * DAY)
    deleted += await _sweep_batches(node, rows.FRAMES, before=now - limits.LIVE_FRAMES_KEPT * SECOND)
    deleted += await _sweep_batches(node, rows.DELIVERIES, before=now - DELIVERIES_KEPT)
    deleted += await _sweep_batches(node, rows.MESSAGES, before=now - DELIVERIES_KEPT)
    deleted += await sweep_live(node.db)
    await take_over_audit(node.db)
    async with node.db.write() as tx:
        return deleted + await tx.run(jobs.SWEEP, before=now - JOBS_KEPT)


async def free_frontiers(node: Node) -> int:
    """Delete the live frontiers of deleted branches. Returns how many rows were deleted."""
    return sum([await _sweep_batches(node, statement, "deleted branches") for statement in rows.FRONTIERS])


async def _sweep_batches(node: Node, statement: Statement, *names: str, **when: int) -> int:
    """Run a deleting statement many times, a limited number of rows each time, so that no writer waits long.
    Returns how many rows were deleted."""
    deleted = 0
    while deleted < SWEPT:
        async with node.db.write(*names) as tx:
            deleted_now = await tx.run(statement, limit=SWEPT_AT_ONCE, **when)
        deleted += deleted_now
        if deleted_now < SWEPT_AT_ONCE:
            break
        await asyncio.sleep(0)
    return deleted


async def sweep_live(db: Database) -> int:
    """Delete events of live edits older than LIVE_KEPT, some at a time. The id of the last one is recorded,
    because a listener that has not read up to this event must resync. Returns how many were deleted."""
    deleted = 0
    while deleted < SWEPT:
        async with db.write("sweep events") as tx:
            old = await tx.all(events.OLD_LIVE, before=now_ms() - LIVE_KEPT, limit=SWEPT_AT_ONCE)
            if not old:
                break
            await tx.run(events.DROP, ids=[row[0] for row in old])
            await tx.many(events.CURSOR_FIRST, [{"name": events.SWEPT, "at": 0}])
            await tx.run(events.CURSOR_TO, follower=events.SWEPT, to=old[-1][0])
        deleted += len(old)
        await asyncio.sleep(0)
    return deleted


async def take_over_audit(db: Database) -> int:
    """Move the rows of the audit table, which older builds wrote, into the event log. Returns how many there
    were. They get event numbers below all others, so that no follower reads them."""
    moved = 0
    while True:
        async with db.write("sweep events") as tx:
            entries = await tx.all(events.AUDIT, limit=SWEPT_AT_ONCE)
            if not entries:
                return moved
            await tx.many(events.INSERT_MANY, [_from_audit(row) for row in entries])
            await tx.run(events.AUDIT_DROP, upto=entries[-1][0])
        moved += len(entries)
        await asyncio.sleep(0)


def _from_audit(row: Row) -> dict[str, Any]:
    number, at, actor, action, subject, data = row
    of_account = action.startswith("account.") and actor == OPERATOR
    return {
        "id": number - AUDIT_BELOW,
        "repo_id": None,
        "account_id": (subject if of_account else actor if actor != OPERATOR else None) or None,
        "number": None,
        "kind": action,
        "actor": actor,
        "device_key_id": None,
        "turn": None,
        "audience": "owner",
        "data": msgspec.json.encode({**msgspec.json.decode(data), "subject": subject}).decode(),
        "created_at": at,
    }


async def purge_deleted(node: Node) -> int:
    """Delete the rows of every repository that can no longer be restored, each repository in its own
    transaction. Returns how many repositories were purged. After a failure it continues with the others, and
    raises PurgeFailed at the end."""
    purged, failed = 0, []
    after_at, after_id = -1, ""
    while True:
        async with node.db.read() as tx:
            due = await tx.all(
                rows.PURGEABLE, now=now_ms(), after_at=after_at, after_id=after_id, limit=PURGED_AT_ONCE
            )
        for repo_id, _ in due:
            try:
                purged += await _purge(node, repo_id)
            except Exception as error:
                logger().error("purge failed", repo=repo_id, reason=f"{type(error).__name__}: {error}")
                failed.append(repo_id)
        if len(due) < PURGED_AT_ONCE:
            break
        after_id, after_at = due[-1]
    if failed:
        raise PurgeFailed(f"{len(failed)} repositories could not be purged: {', '.join(failed)}")
    return purged


async def _purge(node: Node, repo_id: str) -> int:
    """Purge one repository. Its seals stay if other repositories have them. Returns 1, or 0 if the repository
    was restored meanwhile."""
    async with node.db.write(repo_name(repo_id)) as tx:
        if await tx.one(rows.STILL_PURGEABLE, repo_id=repo_id, now=now_ms()) is None:
            return 0
        await quota.purge(tx, repo_id)
        await holding.hand_over(tx, repo_id)
        for statement in rows.PURGE:
            await tx.run(statement, repo_id=repo_id)
    return 1
