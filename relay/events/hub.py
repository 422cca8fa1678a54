"""Who is told what happened. The event log in the database is the truth; a wake-up is only a hint.

`announce` writes an event in the transaction of its effect. One reader follows the log, woken after commits,
by other processes and every few seconds besides, and hands each event to the peers that subscribed to its
repository. Where many transactions write at once, events of different repositories may appear out of order:
the reader goes on from the horizon below which nothing can appear any more, and a peer, whose repository's
events come in order, passes over what it has had (design/relay, Events and sockets).

Every peer has a bounded queue: one that reads too slowly loses its events and is told to resync; nobody
waits for it. What a peer may see is asked of a callback, when it subscribes and again before each delivery.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec

from localstore.core.model.sync import Event, Hidden, Resync, Subscribed
from relay.base.clock import now_ms
from relay.db.engine.database import Database, Row, Tx
from relay.db.live import event as rows
from relay.db.live import listener as listeners

POLL = 5.0  # seconds between looks at the log when nothing woke us: another process may have written
ALIVE = 2.0  # seconds between looks at whether sessions still live: another process may have ended one
ASKED = 500  # sessions of one such look
COALESCE = 0.01  # seconds in which commits share one look
BATCH = 500  # events of one read
BACKLOG = 1000  # events a subscriber may be behind before it has to resync
QUEUE = 1000  # events that wait for one peer
LOG = logging.getLogger(__name__)

Visible = Callable[[list[str]], Awaitable[set[str]]]


@dataclass(slots=True, eq=False)
class Peer:
    """One listener. `cursors`: repository → the last event that was queued for it."""

    session_id: str | None
    cursors: dict[str, int] = field(default_factory=dict)
    queue: deque[Event] = field(default_factory=deque)
    lost: set[str] = field(default_factory=set)  # repositories to resync
    closed: bool = False
    ready: asyncio.Event = field(default_factory=asyncio.Event)

    def offer(self, event: Event) -> None:
        """Queue an event, or give up on the queue when it is full."""
        cursor = self.cursors.get(event.repo_id)
        if cursor is None or event.id <= cursor:
            return
        self.cursors[event.repo_id] = event.id
        if len(self.queue) >= QUEUE:
            self.lost.update(waiting.repo_id for waiting in self.queue)
            self.lost.add(event.repo_id)
            self.queue.clear()
        elif event.repo_id not in self.lost:
            self.queue.append(event)
        self.ready.set()

    def take(self) -> tuple[list[Event], set[str]]:
        """What waits: events in order, and the repositories whose events were lost."""
        events, lost = list(self.queue), self.lost
        self.queue.clear()
        self.lost = set()
        self.ready.clear()
        return events, lost

    def close(self) -> None:
        self.closed = True
        self.ready.set()


class Hub:
    """The hub of one process."""

    def __init__(self, db: Database) -> None:
        self._db = db
        self._peers: set[Peer] = set()
        self._listeners: dict[str, set[Peer]] = {}
        self._position = 0  # every event up to here was handed out
        self._handed_out = 0  # how many were, the same one perhaps several times
        self._wake = asyncio.Event()
        self._tasks: list[asyncio.Task[None]] = []

    async def start(self) -> None:
        """Follow the log from where it stands."""
        self._position = await self._settled()
        self._db.on_wake(self._wake.set)
        self._tasks = [asyncio.create_task(self._follow()), asyncio.create_task(self._watch())]

    async def stop(self) -> None:
        """Close every peer and stop following."""
        for peer in self._peers:
            peer.close()
        for task in self._tasks:
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task

    # --- what services call

    async def announce(self, tx: Tx, repo_id: str, kind: str, **data: Any) -> int:
        """Write an event in the caller's transaction, which names the repository (`Database.write`);
        listeners hear of it after the commit. Returns its id. `kind`: live, seal, ref or repo. `data`: ids,
        numbers and names, never content."""
        event_id: int = await tx.value(
            rows.INSERT,
            id=await tx.stamp(),
            repo_id=repo_id,
            kind=kind,
            data=msgspec.json.encode(data).decode(),
            created_at=now_ms(),
        )
        tx.after_commit(self._announced)
        return event_id

    def _announced(self) -> None:
        self._wake.set()
        self._db.wake_others()

    def end_sessions(self, session_ids: Iterable[str]) -> None:
        """Close the peers of sessions that were revoked; call it after the commit (`tx.after_commit`)."""
        ended = set(session_ids)
        for peer in self._peers:
            if peer.session_id in ended:
                peer.close()

    # --- peers

    def join(self, session_id: str | None) -> Peer:
        peer = Peer(session_id)
        self._peers.add(peer)
        return peer

    def leave(self, peer: Peer) -> None:
        for repo_id in list(peer.cursors):
            self.unsubscribe(peer, repo_id)
        self._peers.discard(peer)
        peer.close()

    async def subscribe(self, peer: Peer, repo_id: str, since: int | None) -> Subscribed | Resync:
        """Deliver the repository's events after `since` from here on; None: from now. The caller has checked
        that the peer may see it. Too far behind, the peer is told to resync."""
        self.unsubscribe(peer, repo_id)
        cursor = await self._settled() if since is None else since
        if await self._is_foreign(cursor):
            return await self._resync(peer, repo_id)
        behind: list[Event] = []
        while True:
            before = self._handed_out
            async with self._db.read() as tx:
                found = await tx.all(rows.OF_REPO, repo_id=repo_id, since=cursor, limit=BATCH)
            behind += map(_event, found)
            cursor = behind[-1].id if behind else cursor
            if len(behind) >= BACKLOG:
                return await self._resync(peer, repo_id)
            if len(found) < BATCH and before == self._handed_out:
                break  # nothing was handed out while we read: the log continues where this backlog ends
        self._listen(peer, repo_id, cursor)
        peer.queue.extend(behind)
        if behind:
            peer.ready.set()
        return Subscribed(repo_id=repo_id, id=behind[0].id - 1 if behind else cursor)

    async def _resync(self, peer: Peer, repo_id: str) -> Resync:
        cursor = await self._settled()
        self._listen(peer, repo_id, cursor)
        return Resync(repo_id=repo_id, id=cursor)

    def unsubscribe(self, peer: Peer, repo_id: str) -> None:
        peer.cursors.pop(repo_id, None)
        listeners = self._listeners.get(repo_id, set())
        listeners.discard(peer)
        if not listeners:
            self._listeners.pop(repo_id, None)

    async def deliveries(self, peer: Peer, visible: Visible) -> AsyncIterator[list[Event | Resync | Hidden]]:
        """Batches for a peer until it is closed. Before each, `visible` says which of its repositories the
        peer may still see; the others are unsubscribed and reported hidden, once. `visible` raises when the
        session has ended, also between batches (it is asked at least every POLL seconds)."""
        while True:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(POLL):
                    await peer.ready.wait()
            if peer.closed:
                return
            asked = list(peer.cursors)
            allowed = await visible(asked)  # meanwhile the peer may subscribe and unsubscribe
            allowed |= peer.cursors.keys() - set(asked)
            allowed &= peer.cursors.keys()
            events, lost = peer.take()
            hidden = [repo_id for repo_id in asked if repo_id in peer.cursors and repo_id not in allowed]
            for repo_id in hidden:
                self.unsubscribe(peer, repo_id)
            batch: list[Event | Resync | Hidden] = [Hidden(repo_id=repo_id) for repo_id in hidden]
            batch += [event for event in events if event.repo_id in allowed]
            batch += [Resync(repo_id=one, id=peer.cursors[one]) for one in sorted(lost & allowed)]
            if batch:
                yield batch

    async def poll(self, repo_ids: Sequence[str], since: int | None) -> tuple[list[Event], int, bool]:
        """Events of these repositories after `since`, where to go on, and whether there are more."""
        last = await self._settled()  # one number for many repositories: only what is final counts
        if since is None or not repo_ids or await self._is_foreign(since):
            return [], last, False
        async with self._db.read() as tx:
            found = await tx.all(rows.OF_REPOS, repo_ids=list(repo_ids), since=since, last=last, limit=BATCH)
        events = [_event(row) for row in found]
        if len(events) < BATCH:
            return events, max(last, since), False
        return events, events[-1].id, True

    # --- the log

    def _listen(self, peer: Peer, repo_id: str, cursor: int) -> None:
        peer.cursors[repo_id] = cursor
        self._listeners.setdefault(repo_id, set()).add(peer)

    async def _is_foreign(self, cursor: int) -> bool:
        """Whether this id was told by a log that is no more: the database was restored from a backup."""
        async with self._db.read() as tx:
            last = int(await tx.value(rows.LAST))
        return cursor > last and cursor > await self._settled()

    async def _settled(self) -> int:
        """The last id that no event can slip in before."""
        async with self._db.read() as tx:
            horizon = await self._db.horizon(tx)
            return int(await tx.value(rows.LAST)) if horizon is None else horizon - 1

    async def _follow(self) -> None:
        while True:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(POLL):
                    await self._wake.wait()
            await asyncio.sleep(COALESCE)
            self._wake.clear()
            try:
                await self._hand_out()
            except Exception:
                LOG.exception("the event log could not be read; trying again")

    async def _watch(self) -> None:
        while True:
            await asyncio.sleep(ALIVE)
            try:
                await self._end_dead()
            except Exception:
                LOG.exception("the sessions could not be looked at; trying again")

    async def _end_dead(self) -> None:
        """Close the peers whose session or key was ended elsewhere."""
        ids = sorted({peer.session_id for peer in self._peers if peer.session_id is not None})
        for start in range(0, len(ids), ASKED):
            part = ids[start : start + ASKED]
            async with self._db.read() as tx:
                living = {row[0] for row in await tx.all(listeners.LIVING, ids=part, now=now_ms())}
            self.end_sessions(set(part) - living)

    async def _hand_out(self) -> None:
        at, found = self._position, BATCH
        async with self._db.read() as tx:
            horizon = await self._db.horizon(tx)  # before the events: what is below it, we shall see
        while found == BATCH:
            async with self._db.read() as tx:
                events = [_event(row) for row in await tx.all(rows.AFTER, since=at, limit=BATCH)]
            for event in events:
                at = event.id
                for peer in self._listeners.get(event.repo_id, ()):
                    peer.offer(event)
            found = len(events)
            self._handed_out += found
        self._position = at if horizon is None else max(self._position, horizon - 1)


def _event(row: Row) -> Event:
    return Event(id=row[0], repo_id=row[1], kind=row[2], data=msgspec.json.decode(row[3]))
