"""Followers: jobs that handle each event of the log exactly once, in any number of processes.

    followers.register("access", end_what_was_allowed, ("repo.delete", "repo.suspend"))
    async def end_what_was_allowed(tx: Tx, events: Sequence[Logged]) -> None: ...

A follower reads the events after its cursor, writes their consequences and moves the cursor. It does all this
in one transaction that holds the lock of its name, so after a crash an event was handled completely or not at
all. It stops at the horizon, below which no new event can appear (`Database.horizon`), so that no event is
skipped. It is woken when the log has an event of its kinds, and also polls every few seconds.

No follower may read `live` events: there are many, and they are deleted after two days. A client that missed
some gets the same information by a bootstrap (a new download of the live frontier).
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass

from relay.db.engine.database import Database, Tx
from relay.db.live import event as rows
from relay.events import log
from relay.events.log import Logged

BATCH_SIZE = 200  # events of one transaction
POLL = 5.0  # seconds between looks when nothing woke us
PAUSE = 1.0  # seconds after a failure
LOG = logging.getLogger(__name__)

Follow = Callable[[Tx, Sequence[Logged]], Awaitable[None]]


@dataclass(slots=True, frozen=True)
class Follower:
    name: str
    follow: Follow
    kinds: tuple[str, ...]
    batch_size: int


class Followers:
    """Runs the followers in one process."""

    def __init__(self, db: Database) -> None:
        self._db = db
        self._all: dict[str, Follower] = {}
        self._wakes: dict[str, asyncio.Event] = {}
        self._tasks: list[asyncio.Task[None]] = []

    def register(self, name: str, follow: Follow, kinds: Sequence[str], batch_size: int = BATCH_SIZE) -> None:
        """Register a follower of events of the kinds `kinds`, before `start` is called. A new follower begins
        with the events that come after its first start. `name`: stored with the follower's position in the
        log, so it must never change. `batch_size`: how many events the follower handles at a time."""
        if log.LIVE in kinds or not kinds:
            raise ValueError(f"{name} names the kinds that it follows, without {log.LIVE}")
        self._all[name] = Follower(name, follow, tuple(kinds), batch_size)

    async def start(self) -> None:
        for follower in self._all.values():
            await self._begin(follower)
        grown = asyncio.Event()
        self._db.on_wake(grown.set)
        async with self._db.read() as tx:
            end = await self._last_settled(tx)
        for name in self._all:
            self._wakes[name] = wake = asyncio.Event()
            self._tasks.append(asyncio.create_task(self._keep_following(name, wake)))
        self._tasks.append(asyncio.create_task(self._wake_followers(grown, end)))

    async def stop(self) -> None:
        """Stop at once. The current transaction is rolled back, and its events are handled again later."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def handle_next(self, name: str) -> int:
        """Let the follower `name` handle its next events. While it runs in one process, it waits in others.
        Returns how many events were handled."""
        follower = self._all[name]
        async with self._db.read() as tx:  # another process may have been faster, and polls find little
            at = await tx.value(rows.CURSOR, name=name)
            if at is None or not await self._read_after(tx, follower.kinds, at, 1):
                return 0
        async with self._db.write(f"follow {name}") as tx:
            at = await tx.value(rows.CURSOR, name=name)
            events = await self._read_after(tx, follower.kinds, at, follower.batch_size)
            if events:
                await follower.follow(tx, events)
                await tx.run(rows.CURSOR_TO, follower=name, to=events[-1].id)
        return len(events)

    async def _begin(self, follower: Follower) -> None:
        """Set the cursor of a new follower to the end of the log, before any event is handled. A cursor
        beyond the end is moved back to it. That happens after a restore from a backup: the log then has fewer
        events than were handled, and new events get the numbers of the lost ones."""
        async with self._db.write(f"follow {follower.name}") as tx:
            end = await self._last_settled(tx)
            await tx.many(rows.CURSOR_FIRST, [{"name": follower.name, "at": end}])
            if await tx.value(rows.CURSOR, name=follower.name) > end:
                await tx.run(rows.CURSOR_TO, follower=follower.name, to=end)

    async def _read_after(self, tx: Tx, kinds: Iterable[str], at: int, limit: int) -> list[Logged]:
        last = await self._last_settled(tx)  # read before the events, so that all up to it are visible
        return await self._read_between(tx, kinds, at, last, limit)

    async def _read_between(
        self, tx: Tx, kinds: Iterable[str], at: int, last: int, limit: int
    ) -> list[Logged]:
        logged = await tx.all(rows.OF_KINDS, since=at, last=last, kinds=list(kinds), limit=limit)
        return [log.to_logged(row) for row in logged]

    async def _last_settled(self, tx: Tx) -> int:
        """The id up to which the log is complete: no new event can appear with this id or a lower one."""
        horizon = await self._db.horizon(tx)
        return int(await tx.value(rows.LAST)) if horizon is None else horizon - 1

    async def _wake_followers(self, grown: asyncio.Event, at: int) -> None:
        """Each time the log has grown, read it once for all followers, and wake those that have new events.
        `at`: the id up to which the log was read before. Most commits are live edits, which no follower
        reads."""
        kinds = sorted({kind for follower in self._all.values() for kind in follower.kinds})
        while True:
            await grown.wait()
            grown.clear()
            try:
                at = await self._wake_after(kinds, at)
            except Exception:
                LOG.exception("the event log could not be read; trying again")
                await asyncio.sleep(PAUSE)
                grown.set()

    async def _wake_after(self, kinds: Sequence[str], at: int) -> int:
        """Wake the followers that have events after `at`. Returns the id up to which the log was read."""
        async with self._db.read() as tx:
            last = await self._last_settled(tx)
            while True:
                events = await self._read_between(tx, kinds, at, last, BATCH_SIZE)
                for follower in self._all.values():
                    if any(event.kind in follower.kinds for event in events):
                        self._wakes[follower.name].set()
                if len(events) < BATCH_SIZE:
                    return max(at, last)
                at = events[-1].id

    async def _keep_following(self, name: str, wake: asyncio.Event) -> None:
        while True:
            wake.clear()
            try:
                behind = await self.handle_next(name)
            except Exception:
                LOG.exception("%s could not follow the event log; trying again", name)
                await asyncio.sleep(PAUSE)
                continue
            if behind:
                continue
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(POLL):
                    await wake.wait()
