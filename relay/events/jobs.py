"""Work beside requests: a leased table of jobs, at least once each, with retries.

    jobs.register("webhook", deliver)                     # async def deliver(data: dict) -> None; idempotent
    async with view.write() as tx:
        await jobs.add(tx, "webhook", {"delivery": id})   # exists exactly when the transaction commits

Handlers are registered at start-up. A job whose worker dies is run again when its lease is over. Periodic
work is a job keyed `kind:hour`, so that any number of processes do it once.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable
from typing import Any

import msgspec

from relay.base.clock import now_ms
from relay.base.ids import new_id
from relay.db import job as rows
from relay.db.engine.database import Database, Row, Tx

HOUR = 3600_000  # milliseconds, as all below
DAY = 24 * HOUR
LEASE = 5 * 60_000
HANDLER = LEASE - 30_000  # a handler is stopped before its lease could pass to another
POLL = 5_000
FIRST_RETRY, LAST_RETRY = 5_000, HOUR
ATTEMPTS = 12
CLAIMED = 8  # jobs run at once by one process
ERROR_CHARS = 2000
LOG = logging.getLogger(__name__)

Handler = Callable[[dict[str, Any]], Awaitable[None]]


class Jobs:
    """The jobs of one process."""

    def __init__(self, db: Database) -> None:
        self._db = db
        self._handlers: dict[str, Handler] = {}
        self._periods: dict[str, int] = {}
        self._wake = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    def register(self, kind: str, handler: Handler, *, hourly: bool = False, daily: bool = False) -> None:
        """Name who does a kind of work. It may run twice and must not mind. `hourly`, `daily`: how often it
        is due by itself."""
        self._handlers[kind] = handler
        if hourly or daily:
            self._periods[kind] = HOUR if hourly else DAY

    async def add(
        self, tx: Tx, kind: str, data: dict[str, Any], *, key: str | None = None, run_at: int | None = None
    ) -> None:
        """Queue work in the caller's transaction; `run_at` in ms, None: now. A `key` is used once: with one
        that is there, nothing is added. Work of later is found when it is due, by looking every `POLL`."""
        await tx.many(
            rows.INSERT,
            [
                {
                    "id": new_id(),
                    "kind": kind,
                    "key": key,
                    "data": msgspec.json.encode(data).decode(),
                    "attempts": 0,
                    "run_at": run_at or now_ms(),
                }
            ],
        )
        if run_at is None or run_at <= now_ms():
            tx.after_commit(self._wake.set)

    async def start(self) -> None:
        self._task = asyncio.create_task(self._work())

    async def stop(self) -> None:
        """Stop at once; what was running is run again when its lease is over."""
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task

    async def run_due(self) -> int:
        """Carry out what is due now; returns how many jobs were tried."""
        await self._add_periodic()
        now = now_ms()
        lease = now + LEASE
        async with self._db.write() as tx:
            claimed = await tx.all(
                rows.CLAIM, now=now, lease=lease, limit=CLAIMED, kinds=sorted(self._handlers)
            )
        await asyncio.gather(*(self._run(row, lease) for row in claimed))
        return len(claimed)

    async def _work(self) -> None:
        while True:
            try:
                if await self.run_due():
                    continue
            except Exception:
                LOG.exception("jobs could not be claimed; trying again")
            self._wake.clear()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(POLL / 1000):
                    await self._wake.wait()

    async def _add_periodic(self) -> None:
        now = now_ms()
        keys = {f"{kind}:{now // period}": kind for kind, period in self._periods.items()}
        async with self._db.read() as tx:
            known = {row[0] for row in await tx.all(rows.KEYS, keys=list(keys))}
        due = {key: kind for key, kind in keys.items() if key not in known}
        if due:
            async with self._db.write() as tx:
                for key, kind in due.items():
                    await self.add(tx, kind, {}, key=key)

    async def _run(self, row: Row, lease: int) -> None:
        job_id, kind, data, attempts = row
        try:
            async with asyncio.timeout(HANDLER / 1000):
                await self._handlers[kind](msgspec.json.decode(data))
        except Exception as error:
            LOG.warning("job %s %s failed at attempt %d", kind, job_id, attempts, exc_info=True)
            await self._failed(job_id, lease, attempts, f"{type(error).__name__}: {error}"[:ERROR_CHARS])
        else:
            async with self._db.write() as tx:
                await tx.run(rows.DONE, job_id=job_id, lease=lease, now=now_ms(), error=None)

    async def _failed(self, job_id: str, lease: int, attempts: int, error: str) -> None:
        """Try again later, or give up: the row stays with its error until the sweep."""
        now = now_ms()
        async with self._db.write() as tx:
            if attempts >= ATTEMPTS:
                await tx.run(rows.DONE, job_id=job_id, lease=lease, now=now, error=error)
            else:
                wait = min(FIRST_RETRY * 2 ** (attempts - 1), LAST_RETRY)
                await tx.run(rows.AGAIN, job_id=job_id, lease=lease, next_at=now + wait, error=error)
