"""Background work: a table of jobs with leases. Each job is run at least once, with retries.

    jobs.register("webhook", deliver, Pace(slots=8))   # async def deliver(data: dict[str, Any]) -> None
    async with view.write() as tx:
        await jobs.add(tx, "webhook", {"delivery": id})   # exists exactly when the transaction commits

Handlers are registered at start-up. Each kind of job has its own pace: a number of slots in one process, a
deadline, and pauses after failures. A kind that is slow or hangs does not delay other kinds. Jobs of one kind
may be divided into lanes, such as one for each host; a slow lane does not delay the others. A lease is
renewed while its job runs. If a worker dies, its job is run again when the lease has ended. Periodic work is
a job with the key `kind:hour`, so that it runs once although several processes add it.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

import msgspec

from relay.base.clock import now_ms
from relay.base.ids import new_id
from relay.db import job as rows
from relay.db.engine.database import Database, Row, Tx

SECOND = 1000  # milliseconds, as all below
HOUR = 3600 * SECOND
DAY = 24 * HOUR
LEASE = 60 * SECOND  # after which the job of a worker that died is run again
RENEW = LEASE // 3
POLL = 5 * SECOND
STUBBORN = 5 * SECOND  # that a stopped handler has to end; then it is abandoned
ERROR_CHARS = 2000
NOBODY = ""  # a lane that has no job
LOG = logging.getLogger(__name__)

Handler = Callable[[dict[str, Any]], Awaitable[None]]


@dataclass(slots=True, frozen=True)
class Pace:
    """How jobs of one kind are run. `slots`: how many run in a process at a time. `each`: how many of these
    may belong to one lane, such as one host. `deadline`: milliseconds after which a job is stopped.
    `attempts`: number of tries. `retry`: pause after the first failure, in milliseconds; it doubles after
    each failure, up to `longest`."""

    slots: int = 2
    deadline: int = 270 * SECOND
    attempts: int = 12
    retry: int = 5 * SECOND
    longest: int = HOUR
    each: int | None = None

    def pause(self, attempts: int) -> int:
        """The pause after this many attempts, in milliseconds."""
        return min(self.retry << min(attempts - 1, 40), self.longest)


class LeaseLost(Exception):
    """Raised if another worker has taken over the job, because this worker was delayed for longer than its
    lease."""


class Jobs:
    """Runs jobs in one process. The jobs are in a table of the database."""

    def __init__(self, db: Database) -> None:
        self._db = db
        self._handlers: dict[str, Handler] = {}
        self._paces: dict[str, Pace] = {}
        self._periods: dict[str, int] = {}
        self._running: Counter[str] = Counter()
        self._in_lane: Counter[tuple[str, str]] = Counter()
        self._runs: set[asyncio.Task[None]] = set()
        self._wake = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    def register(
        self,
        kind: str,
        handler: Handler,
        pace: Pace | None = None,
        *,
        hourly: bool = False,
        daily: bool = False,
    ) -> None:
        """Register the handler of a kind of job. The handler may run twice for one job. `hourly`, `daily`:
        also run the handler once an hour or once a day."""
        self._handlers[kind], self._paces[kind] = handler, pace or Pace()
        if hourly or daily:
            self._periods[kind] = HOUR if hourly else DAY

    async def add(
        self,
        tx: Tx,
        kind: str,
        data: dict[str, Any],
        *,
        key: str | None = None,
        run_at: int | None = None,
        lane: str | None = None,
    ) -> None:
        """Queue a job in the caller's transaction. `run_at`: when to run it, in milliseconds; None means at
        once. A job for a later time may start up to `POLL` late. `key`: if a job with this key exists
        already, nothing is added. `lane`: a group of jobs, such as those for one host. It is needed if the
        kind limits how many jobs of one lane run at a time (`Pace.each`)."""
        await tx.many(
            rows.INSERT,
            [
                {
                    "id": new_id(),
                    "kind": kind,
                    "key": key,
                    "lane": lane,
                    "data": msgspec.json.encode(data).decode(),
                    "attempts": 0,
                    "run_at": run_at or now_ms(),
                }
            ],
        )
        if run_at is None or run_at <= now_ms():
            tx.after_commit(self._wake.set)

    async def start(self) -> None:
        self._task = asyncio.create_task(self._claim_forever())

    async def stop(self) -> None:
        """Stop at once. Running jobs are run again when their leases have ended."""
        tasks = [*self._runs, *([self._task] if self._task else [])]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def run_due(self) -> int:
        """Run the jobs that are due and for which a slot is free. Returns the number of jobs that were
        started."""
        await self._add_periodic()
        begun = await self._begin()
        await asyncio.gather(*begun)
        return len(begun)

    async def _claim_forever(self) -> None:
        while True:
            self._wake.clear()
            try:
                await self._add_periodic()
                await self._begin()
            except Exception:
                LOG.exception("jobs could not be claimed; trying again")
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(POLL / SECOND):
                    await self._wake.wait()

    async def _add_periodic(self) -> None:
        now = now_ms()
        keys = {f"{kind}:{now // period}": kind for kind, period in self._periods.items()}
        async with self._db.read() as tx:
            existing = {row[0] for row in await tx.all(rows.KEYS, keys=list(keys))}
        due = {key: kind for key, kind in keys.items() if key not in existing}
        if due:
            async with self._db.write() as tx:
                for key, kind in due.items():
                    await self.add(tx, kind, {}, key=key)

    async def _begin(self) -> list[asyncio.Task[None]]:
        """Start the due jobs of each kind for which slots are free. Returns their tasks."""
        free = {kind: pace.slots - self._running[kind] for kind, pace in self._paces.items()}
        async with self._db.read() as tx:  # a read that takes no write lock
            due = [
                kind
                for kind, slots in free.items()
                if slots > 0 and await tx.one(rows.DUE, of_kind=kind, now=now_ms())
            ]
        if not due:
            return []
        claimed: list[tuple[Row, int]] = []
        async with self._db.write() as tx:
            now = now_ms()
            for kind in due:
                jobs = await self._claim(tx, kind, free[kind], now)
                claimed += [(row, now + LEASE) for row in jobs]
        return [self._run(row, lease) for row, lease in claimed]

    async def _claim(self, tx: Tx, kind: str, slots: int, now: int) -> list[Row]:
        """Claim due jobs of this kind for this process, at most `slots`, and return their rows. If the kind
        limits the jobs of one lane, a lane that already runs so many is left out."""
        each, lease = self._paces[kind].each, now + LEASE
        if each is None:
            return await tx.all(rows.CLAIM, of_kind=kind, now=now, lease=lease, limit=slots)
        taken = Counter({lane: n for (of, lane), n in self._in_lane.items() if of == kind})
        ids: list[str] = []
        more = True
        while more and len(ids) < slots:  # each round but the last fills a lane
            full = [NOBODY, *(lane for lane, n in taken.items() if n >= each)]
            due = await tx.all(rows.DUE_IN_LANES, of_kind=kind, now=now, full=full, limit=slots)
            more = False
            for job_id, lane in due:
                if job_id in ids:
                    continue
                if taken[lane] >= each:
                    more = True  # what is due behind these was not looked at
                elif len(ids) < slots:
                    taken[lane] += 1
                    ids.append(job_id)
        return await tx.all(rows.TAKE, ids=ids, lease=lease) if ids else []

    def _run(self, row: Row, lease: int) -> asyncio.Task[None]:
        kind, lane = row[1], row[4]
        task = asyncio.create_task(self._carry_out(row, lease))
        self._running[kind] += 1
        if lane is not None:
            self._in_lane[kind, lane] += 1
        self._runs.add(task)

        def over(done: asyncio.Task[None]) -> None:
            self._running[kind] -= 1
            if lane is not None:
                self._in_lane[kind, lane] -= 1
                if not self._in_lane[kind, lane]:
                    del self._in_lane[kind, lane]
            self._runs.discard(done)
            self._wake.set()  # its slot is free
            if not done.cancelled() and (error := done.exception()) is not None:
                LOG.error("the end of a job of kind %s could not be written", kind, exc_info=error)

        task.add_done_callback(over)
        return task

    async def _carry_out(self, row: Row, lease: int) -> None:
        job_id, kind, data, attempts, _ = row
        pace, held = self._paces[kind], _Held(job_id, lease)
        work = asyncio.ensure_future(self._handlers[kind](msgspec.json.decode(data)))
        try:
            await self._watch(work, held, pace.deadline)
        except LeaseLost:
            LOG.warning("job %s %s is another worker's by now", kind, job_id)
        except Exception as error:
            LOG.warning("job %s %s failed at attempt %d", kind, job_id, attempts, exc_info=True)
            await self._record_failure(held, pace, attempts, f"{type(error).__name__}: {error}"[:ERROR_CHARS])
        else:
            async with self._db.write() as tx:
                await tx.run(rows.DONE, job_id=job_id, lease=held.lease, now=now_ms(), error=None)
        finally:
            work.cancel()

    async def _watch(self, work: asyncio.Future[None], held: _Held, deadline: int) -> None:
        """Wait for the work, and renew its lease meanwhile. Raises the errors of the work, TimeoutError at
        the deadline, and LeaseLost if another worker has the job."""
        loop = asyncio.get_running_loop()
        ends = loop.time() + deadline / SECOND
        while True:
            seconds_left = ends - loop.time()
            await asyncio.wait({work}, timeout=min(max(seconds_left, 0), RENEW / SECOND))
            if work.done():
                return work.result()
            if loop.time() >= ends:
                await _stop(work, held.job_id)
                raise TimeoutError(f"it took longer than {deadline / SECOND:g} s")
            if not await self._renew_lease(held):
                await _stop(work, held.job_id)
                raise LeaseLost

    async def _renew_lease(self, held: _Held) -> bool:
        """Renew the lease. Returns False if another worker has it. If the database cannot be reached, returns
        True, because the lease is valid until it ends."""
        until = max(now_ms() + LEASE, held.lease + 1)
        try:
            async with self._db.write() as tx:
                ours = await tx.run(rows.RENEW, job_id=held.job_id, lease=held.lease, until=until)
        except Exception:
            LOG.exception("the lease of job %s could not be renewed; trying again", held.job_id)
            return True
        held.lease = until
        return bool(ours)

    async def _record_failure(self, held: _Held, pace: Pace, attempts: int, error: str) -> None:
        """Schedule another attempt of the job, or give up. If it gives up, the job's row stays with the error
        until old jobs are deleted."""
        now, mine = now_ms(), {"job_id": held.job_id, "lease": held.lease}
        async with self._db.write() as tx:
            if attempts >= pace.attempts:
                await tx.run(rows.DONE, **mine, now=now, error=error)
            else:
                await tx.run(rows.AGAIN, **mine, next_at=now + pace.pause(attempts), error=error)


@dataclass(slots=True)
class _Held:
    """A running job, with the time at which its lease ends."""

    job_id: str
    lease: int


async def _stop(work: asyncio.Future[None], job_id: str) -> None:
    """Cancel the task of a handler. If the task does not end, it is abandoned: its slot is free for another
    job, and another worker may take its job."""
    work.cancel()
    await asyncio.wait({work}, timeout=STUBBORN / SECOND)
    if not work.done():
        LOG.error("job %s does not end after it was stopped; it is abandoned", job_id)
