"""Delivers events to listeners (peers). The event log in the database is the truth; a wake-up is only a hint.

One reader follows the log. It is woken after commits in this and other processes, and every few seconds. It
hands each event to the peers that subscribed to the event's repository. While many transactions write, events
of different repositories may appear out of order. So the reader starts again from the horizon, below which no
new event can appear, and peers skip events that they already had (docs/design/008, Events and sockets).

The rights of a peer are read when it subscribes, and before it gets an event that changes who sees the
repository. Every few seconds, the rights of all peers are read with one query. A peer that lost access by an
event receives no later event of the log.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping
from time import monotonic
from typing import Any

from localstore.core.model.sync import Event, Hidden, Resync, Subscribed
from relay.base.clock import now_ms
from relay.db.engine.database import Author, Database, Row, Tx
from relay.db.live import event as rows
from relay.db.live import listener as listeners
from relay.db.repo import Role
from relay.events import log
from relay.events.channels import Channels
from relay.events.log import LEVEL, Audience, Logged, audience_of
from relay.events.peers import Peer, QueuedEvent, to_wire

POLL = 5.0  # seconds between reads of the log and of all rights without a wake-up
ALIVE = 2.0  # seconds between checks of sessions: another process may have ended one
ASKED = 500  # sessions in one such check
COALESCE = 0.01  # seconds between two reads: commits in between share one
BATCH = 500  # events of one read
BACKLOG = 1000  # events a subscriber may be behind before it has to resync
LOG = logging.getLogger(__name__)

# (account, repository) → what the account may see; hidden ones are absent
Seen = Mapping[tuple[str, str], Audience]
# reads the rights of these accounts in these repositories
Rights = Callable[[Collection[str], Collection[str]], Awaitable[Seen]]


class Hub:
    """Delivers the events of the log to the listeners of one process. `rights`: a function that reads which
    levels of events (reader, writer or owner) accounts may see in repositories. If None, they are read from
    the database."""

    def __init__(self, db: Database, rights: Rights | None = None) -> None:
        self._db = db
        self._rights = rights or self._rights_of
        self._peers: set[Peer] = set()
        self._listeners: dict[str, set[Peer]] = {}
        self.channels = Channels(db)
        self._position = 0  # every event up to here was delivered
        self._handed_out = 0  # number of deliveries; one event may count several times
        self._wake = asyncio.Event()
        self._tasks: list[asyncio.Task[None]] = []

    async def start(self) -> None:
        """Begin to follow the log, from its current end."""
        self._position = await self._last_settled()
        self._db.on_wake(self._wake.set)
        self._db.on_tell(self.channels.people.handle_message)
        self._tasks = [asyncio.create_task(self._follow()), asyncio.create_task(self._watch())]

    async def stop(self) -> None:
        """Close every peer and stop following the log."""
        for peer in self._peers:
            peer.close()
        for task in self._tasks:
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task
        self.channels.people.stop()

    # --- what services call

    async def announce(
        self,
        tx: Tx,
        repo_id: str,
        kind: str,
        *,
        number: int | None = None,
        audience: Audience = "reader",
        author: Author | None = None,
        **data: Any,
    ) -> int:
        """Write an event of a repository, in the transaction of its effect. Returns the event's id. See
        `relay.events.log.append`."""
        return await log.append(
            tx, kind, repo_id=repo_id, number=number, audience=audience, author=author, data=data
        )

    def end_sessions(self, session_ids: Iterable[str]) -> None:
        """Close the peers whose sessions were revoked. Call it after the commit (`tx.after_commit`)."""
        ended = set(session_ids)
        for peer in self._peers:
            if peer.session_id in ended:
                peer.close()

    # --- peers

    def join(
        self,
        session_id: str | None,
        account_id: str = "",
        most: Audience = "owner",
        until: int | None = None,
    ) -> Peer:
        peer = Peer(session_id, account_id, most, until)
        self._peers.add(peer)
        return peer

    def leave(self, peer: Peer) -> None:
        for repo_id in list(peer.cursors):
            self.unsubscribe(peer, repo_id)
        for channel in list(peer.channels.values()):
            self.channels.end(channel)
        self._peers.discard(peer)
        peer.close()

    async def subscribe(self, peer: Peer, repo_id: str, since: int | None) -> Subscribed | Resync | Hidden:
        """Subscribe the peer to a repository. Its events after `since` are queued; if `since` is None, only
        new ones. Returns Hidden if the peer may not see the repository. Returns Resync if too many events are
        missing, so that the peer has to load it again. Nothing may be read from the peer's queue during this
        call, because queued events may turn out to be hidden."""
        self.unsubscribe(peer, repo_id)
        audience = await self._may_see(peer, repo_id)
        if audience is None:
            return Hidden(repo_id=repo_id)
        peer.sees(repo_id, audience)
        outcome = await self._listen_from(peer, repo_id, since)
        # Read the rights again now that it listens: later changes are delivered in order.
        audience = await self._may_see(peer, repo_id)
        if audience is None or repo_id not in peer.cursors:
            self.unsubscribe(peer, repo_id)
            return Hidden(repo_id=repo_id)
        peer.sees(repo_id, audience)
        return outcome

    async def wake_at_events(self, peer: Peer, repo_ids: Collection[str]) -> None:
        """Wake the peer at each later event of these repositories that it may see. To wake it, its event
        `ready` is set."""
        for repo_id, audience in (await self.heard_by(peer.account_id, repo_ids)).items():
            peer.sees(repo_id, audience)
            self._listen(peer, repo_id, self._position)

    async def _listen_from(self, peer: Peer, repo_id: str, since: int | None) -> Subscribed | Resync:
        """Subscribe the peer to a repository, and queue the events after `since`. If too many are missing,
        the peer is told to load the repository again (Resync)."""
        cursor = await self._last_settled() if since is None else since
        if since is not None and await self._is_lost(cursor):
            return await self._resync(peer, repo_id)
        behind: list[Logged] = []
        while True:
            before = self._handed_out
            async with self._db.read() as tx:
                older = await tx.all(rows.OF_REPO, repo_id=repo_id, since=cursor, limit=BATCH)
            behind += map(log.to_logged, older)
            cursor = behind[-1].id if behind else cursor
            if len(behind) >= BACKLOG:
                return await self._resync(peer, repo_id)
            if len(older) < BATCH and before == self._handed_out:
                break  # nothing was delivered while we read: the log continues where this backlog ends
        self._listen(peer, repo_id, behind[0].id - 1 if behind else cursor)
        for event in behind:
            peer.offer(QueuedEvent(event))
        return Subscribed(repo_id=repo_id, id=behind[0].id - 1 if behind else cursor)

    async def _resync(self, peer: Peer, repo_id: str) -> Resync:
        cursor = await self._last_settled()
        self._listen(peer, repo_id, cursor)
        return Resync(repo_id=repo_id, id=cursor)

    def unsubscribe(self, peer: Peer, repo_id: str) -> None:
        peer.forget(repo_id)
        listeners = self._listeners.get(repo_id, set())
        listeners.discard(peer)
        if not listeners:
            self._listeners.pop(repo_id, None)

    async def poll(
        self, levels: Mapping[str, Audience], since: int | None
    ) -> tuple[list[Event], int, bool, bool]:
        """Read the events after `since` of some repositories. `levels`: repository id → who the caller is
        there (reader, writer or owner), which decides what events it sees. Returns (events, the number from
        which to continue, whether there are more events, whether events after `since` were deleted)."""
        last = await self._last_settled()  # one number for many repositories: stay below the horizon
        if since is None or not levels:
            return [], last, False, False
        if await self._is_lost(since):
            return [], last, False, True
        async with self._db.read() as tx:
            newer = await tx.all(rows.OF_REPOS, repo_ids=list(levels), since=since, last=last, limit=BATCH)
        logged = [log.to_logged(row) for row in newer]
        visible = [
            to_wire(event) for event in logged if LEVEL[event.audience] <= LEVEL[levels[event.repo_id or ""]]
        ]
        if len(logged) < BATCH:
            return visible, max(last, since), False, False
        return visible, logged[-1].id, True, False

    async def heard_by(self, account_id: str, repo_ids: Collection[str]) -> dict[str, Audience]:
        """Who this account is in each of these repositories: reader, writer or owner. This decides which of
        their events it may see. Returns repository id → this level; hidden repositories are left out."""
        seen = await self._rights({account_id}, repo_ids)
        return {repo_id: seen[account_id, repo_id] for repo_id in repo_ids if (account_id, repo_id) in seen}

    # --- rights

    async def may_hear(self, peer: Peer, repo_id: str) -> int:
        """The level of events (see `relay.events.log.LEVEL`) that the peer may now see of the repository; 0
        for none."""
        audience = await self._may_see(peer, repo_id)
        return peer.level(audience) if audience else 0

    async def _may_see(self, peer: Peer, repo_id: str) -> Audience | None:
        return (await self._rights({peer.account_id}, {repo_id})).get((peer.account_id, repo_id))

    async def _rights_of(self, accounts: Collection[str], repo_ids: Collection[str]) -> Seen:
        async with self._db.read() as tx:
            rights = await tx.all(listeners.SEEN_BY, ids=list(repo_ids))
        return _audiences(rights, accounts)

    async def _ask_again(self, repo_ids: Collection[str]) -> None:
        """Read again which levels of events the peers that follow these repositories may see there, with one
        query for all."""
        peers = {
            (peer, watched_id)
            for watched_id in repo_ids
            for peer in self._listeners.get(watched_id, set()) | self.channels.peers(watched_id)
        }
        if not peers:
            return
        seen = await self._rights({peer.account_id for peer, _ in peers}, repo_ids)
        for peer, repo_id in peers:
            audience = seen.get((peer.account_id, repo_id))
            self.channels.allow(peer, repo_id, peer.level(audience) if audience else 0)
            if repo_id not in peer.cursors:
                continue  # unsubscribed meanwhile
            if audience is None:
                self.unsubscribe(peer, repo_id)
            peer.sees(repo_id, audience)

    async def _watch(self) -> None:
        last_poll = monotonic()
        while True:
            await asyncio.sleep(ALIVE)
            try:
                await self._end_dead(self._peers)
                if monotonic() - last_poll >= POLL:
                    last_poll = monotonic()
                    await self._ask_again(self._listeners.keys() | self.channels.repos)
            except Exception:
                LOG.exception("the rights of listeners could not be read; trying again")

    async def _end_dead(self, peers: Iterable[Peer]) -> None:
        """Close these peers if their session or key has ended."""
        all_peers = list(peers)
        ids = sorted({peer.session_id for peer in all_peers if peer.session_id is not None})
        for start in range(0, len(ids), ASKED):
            part = ids[start : start + ASKED]
            async with self._db.read() as tx:
                living = {row[0] for row in await tx.all(listeners.LIVING, ids=part, now=now_ms())}
            self.end_sessions(set(part) - living)
        for peer in all_peers:
            if peer.over:
                peer.close()

    # --- the log

    def _listen(self, peer: Peer, repo_id: str, cursor: int) -> None:
        peer.cursors[repo_id] = cursor
        self._listeners.setdefault(repo_id, set()).add(peer)

    async def _is_lost(self, cursor: int) -> bool:
        """Whether events after this id are missing. They were deleted, or the log was replaced when the
        database was restored from a backup."""
        async with self._db.read() as tx:
            last = int(await tx.value(rows.LAST))
            swept = await tx.value(rows.CURSOR, name=rows.SWEPT) or 0
        return cursor < swept or (cursor > last and cursor > await self._last_settled())

    async def _last_settled(self) -> int:
        """The id up to which the log is complete: no new event can appear with this id or a lower one."""
        async with self._db.read() as tx:
            horizon = await self._db.horizon(tx)
            return int(await tx.value(rows.LAST)) if horizon is None else horizon - 1

    async def _follow(self) -> None:
        looked = 0.0
        while True:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(POLL):
                    await self._wake.wait()
            await asyncio.sleep(looked + COALESCE - monotonic())
            self._wake.clear()
            looked = monotonic()
            try:
                await self._hand_out()
            except Exception:
                LOG.exception("the event log could not be read; trying again")

    async def _hand_out(self) -> None:
        at, count = self._position, BATCH
        async with self._db.read() as tx:
            horizon = await self._db.horizon(tx)  # read before the events, so that all below it are visible
        while count == BATCH:
            async with self._db.read() as tx:
                logged = [log.to_logged(row) for row in await tx.all(rows.AFTER, since=at, limit=BATCH)]
            for event in logged:
                await self._hand_to_peers(event)
                at = event.id
            count = len(logged)
            self._handed_out += count
        self._position = at if horizon is None else max(self._position, horizon - 1)

    async def _hand_to_peers(self, event: Logged) -> None:
        if event.repo_id is None:
            if event.kind in log.ENDS:
                await self._end_dead([peer for peer in self._peers if peer.account_id == event.account_id])
            return
        peers = self._listeners.get(event.repo_id, set())
        late = [peer for peer in peers if peer.cursors.get(event.repo_id, event.id) < event.id]
        carried = event.repo_id in self.channels.repos
        if not late and not carried:
            return
        if event.changes_access:
            await self._ask_again([event.repo_id])
        queued = QueuedEvent(event)
        for peer in late:
            peer.offer(queued)
        if carried:
            await self._apply_to_channels(queued.event)

    async def _apply_to_channels(self, event: Event) -> None:
        """Apply an event to the channels. A live event delivers its live frame, and the deletion of a branch
        ends the channels of the branch. Other events do not concern channels."""
        match event.kind, event.data:
            case log.LIVE, {"branch_id": str(branch_id), "seq": int(seq)}:
                await self.channels.hand_out(branch_id, seq)
            case "ref.delete", {"type": "branch", "name": str(name)}:
                self.channels.end_branch(event.repo_id, name)


def _audiences(rights: Iterable[Row], accounts: Collection[str]) -> dict[tuple[str, str], Audience]:
    seen: dict[tuple[str, str], Audience] = {}
    for repo_id, owner_id, public, account_id, role in rights:
        if public:
            for account in accounts:
                seen.setdefault((account, repo_id), "reader")
        if account_id in accounts:
            seen[account_id, repo_id] = audience_of(_role(role))
        if owner_id in accounts:
            seen[owner_id, repo_id] = "owner"
    return seen


def _role(word: str | None) -> Role | None:
    return word  # type: ignore[return-value]  # the column holds nothing else
