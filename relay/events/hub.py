"""Who is told what happened. The event log in the database is the truth; a wake-up is only a hint.

One reader follows the log, woken after commits here and in other processes and every few seconds besides, and
hands each event to the peers that subscribed to its repository. Where many transactions write at once,
events of different repositories may appear out of order: the reader goes on from the horizon below which
nothing can appear any more, and a peer, whose repository's events come in order, passes over what it has had
(design/relay, Events and sockets).

What a peer may hear is asked when it subscribes, again before it is handed an event that changes who sees the
repository, and every few seconds, for all peers in one query. Nothing that is later in the log reaches a peer
whom such an event has shut out.
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
from relay.events.peers import Peer, Told, to_wire

POLL = 5.0  # seconds between looks at the log, and at all rights, when nothing woke us
ALIVE = 2.0  # seconds between looks at whether sessions still live: another process may have ended one
ASKED = 500  # sessions of one such look
COALESCE = 0.01  # seconds between two looks: commits of this time share one
BATCH = 500  # events of one read
BACKLOG = 1000  # events a subscriber may be behind before it has to resync
LOG = logging.getLogger(__name__)

Seen = Mapping[tuple[str, str], Audience]  # (account, repository) → what the account hears; hidden ones lack
Rights = Callable[[Collection[str], Collection[str]], Awaitable[Seen]]  # of these accounts, in these


class Hub:
    """The hub of one process. `rights`: what accounts may hear of repositories; from the database if None."""

    def __init__(self, db: Database, rights: Rights | None = None) -> None:
        self._db = db
        self._rights = rights or self._rights_of
        self._peers: set[Peer] = set()
        self._listeners: dict[str, set[Peer]] = {}
        self.channels = Channels(db)
        self._position = 0  # every event up to here was handed out
        self._handed_out = 0  # how many were, the same one perhaps several times
        self._wake = asyncio.Event()
        self._tasks: list[asyncio.Task[None]] = []

    async def start(self) -> None:
        """Follow the log from where it stands."""
        self._position = await self._settled()
        self._db.on_wake(self._wake.set)
        self._db.on_tell(self.channels.people.heard)
        self._tasks = [asyncio.create_task(self._follow()), asyncio.create_task(self._watch())]

    async def stop(self) -> None:
        """Close every peer and stop following."""
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
        """Write an event of a repository; see `relay.events.log.append`. Returns its id."""
        return await log.append(
            tx, kind, repo_id=repo_id, number=number, audience=audience, author=author, data=data
        )

    def end_sessions(self, session_ids: Iterable[str]) -> None:
        """Close the peers of sessions that were revoked; call it after the commit (`tx.after_commit`)."""
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
        """Queue the repository's events after `since` from here on; None: from now. Hidden unless the peer
        may see it. Too far behind, the peer is told to resync. Nobody takes from the peer meanwhile: what is
        queued may yet be hidden."""
        self.unsubscribe(peer, repo_id)
        audience = await self._may_see(peer, repo_id)
        if audience is None:
            return Hidden(repo_id=repo_id)
        peer.sees(repo_id, audience)
        told = await self._from(peer, repo_id, since)
        # Asked again now that it listens: whatever changes from here on is handed to it in order.
        audience = await self._may_see(peer, repo_id)
        if audience is None or repo_id not in peer.cursors:
            self.unsubscribe(peer, repo_id)
            return Hidden(repo_id=repo_id)
        peer.sees(repo_id, audience)
        return told

    async def rouse(self, peer: Peer, repo_ids: Collection[str]) -> None:
        """Have events of these repositories, where the peer may hear them, make it `ready` from now on."""
        for repo_id, audience in (await self.heard_by(peer.account_id, repo_ids)).items():
            peer.sees(repo_id, audience)
            self._listen(peer, repo_id, self._position)

    async def _from(self, peer: Peer, repo_id: str, since: int | None) -> Subscribed | Resync:
        """Listen; the events after `since` that were written before are queued."""
        cursor = await self._settled() if since is None else since
        if since is not None and await self._is_lost(cursor):
            return await self._resync(peer, repo_id)
        behind: list[Logged] = []
        while True:
            before = self._handed_out
            async with self._db.read() as tx:
                found = await tx.all(rows.OF_REPO, repo_id=repo_id, since=cursor, limit=BATCH)
            behind += map(log.row, found)
            cursor = behind[-1].id if behind else cursor
            if len(behind) >= BACKLOG:
                return await self._resync(peer, repo_id)
            if len(found) < BATCH and before == self._handed_out:
                break  # nothing was handed out while we read: the log continues where this backlog ends
        self._listen(peer, repo_id, behind[0].id - 1 if behind else cursor)
        for event in behind:
            peer.offer(Told(event))
        return Subscribed(repo_id=repo_id, id=behind[0].id - 1 if behind else cursor)

    async def _resync(self, peer: Peer, repo_id: str) -> Resync:
        cursor = await self._settled()
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
        """Events after `since` of these repositories that may be heard, where to go on, whether there are
        more, and whether some that came after `since` are gone."""
        last = await self._settled()  # one number for many repositories: only what is final counts
        if since is None or not levels:
            return [], last, False, False
        if await self._is_lost(since):
            return [], last, False, True
        async with self._db.read() as tx:
            found = await tx.all(rows.OF_REPOS, repo_ids=list(levels), since=since, last=last, limit=BATCH)
        logged = [log.row(one) for one in found]
        heard = [to_wire(one) for one in logged if LEVEL[one.audience] <= LEVEL[levels[one.repo_id or ""]]]
        if len(logged) < BATCH:
            return heard, max(last, since), False, False
        return heard, logged[-1].id, True, False

    async def heard_by(self, account_id: str, repo_ids: Collection[str]) -> dict[str, Audience]:
        """What this account may hear of those of these repositories that it sees."""
        seen = await self._rights({account_id}, repo_ids)
        return {repo_id: seen[account_id, repo_id] for repo_id in repo_ids if (account_id, repo_id) in seen}

    # --- rights

    async def may_hear(self, peer: Peer, repo_id: str) -> int:
        """The level of what the peer may hear there now; 0 where it sees no such repository."""
        audience = await self._may_see(peer, repo_id)
        return peer.level(audience) if audience else 0

    async def _may_see(self, peer: Peer, repo_id: str) -> Audience | None:
        return (await self._rights({peer.account_id}, {repo_id})).get((peer.account_id, repo_id))

    async def _rights_of(self, accounts: Collection[str], repo_ids: Collection[str]) -> Seen:
        async with self._db.read() as tx:
            found = await tx.all(listeners.SEEN_BY, ids=list(repo_ids))
        return _seen(found, accounts)

    async def _ask_again(self, repo_ids: Collection[str]) -> None:
        """What every peer of these repositories may hear, in one query."""
        peers = {
            (peer, one)
            for one in repo_ids
            for peer in self._listeners.get(one, set()) | self.channels.peers(one)
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
        asked = monotonic()
        while True:
            await asyncio.sleep(ALIVE)
            try:
                await self._end_dead(self._peers)
                if monotonic() - asked >= POLL:
                    asked = monotonic()
                    await self._ask_again(self._listeners.keys() | self.channels.repos)
            except Exception:
                LOG.exception("the rights of listeners could not be looked at; trying again")

    async def _end_dead(self, peers: Iterable[Peer]) -> None:
        """Close these peers if their session or key has ended."""
        here = list(peers)
        ids = sorted({peer.session_id for peer in here if peer.session_id is not None})
        for start in range(0, len(ids), ASKED):
            part = ids[start : start + ASKED]
            async with self._db.read() as tx:
                living = {row[0] for row in await tx.all(listeners.LIVING, ids=part, now=now_ms())}
            self.end_sessions(set(part) - living)
        for peer in here:
            if peer.over:
                peer.close()

    # --- the log

    def _listen(self, peer: Peer, repo_id: str, cursor: int) -> None:
        peer.cursors[repo_id] = cursor
        self._listeners.setdefault(repo_id, set()).add(peer)

    async def _is_lost(self, cursor: int) -> bool:
        """Whether events after this id are gone: swept, or of a log that is no more, since the database was
        restored from a backup."""
        async with self._db.read() as tx:
            last = int(await tx.value(rows.LAST))
            swept = await tx.value(rows.CURSOR, name=rows.SWEPT) or 0
        return cursor < swept or (cursor > last and cursor > await self._settled())

    async def _settled(self) -> int:
        """The last id that no event can slip in before."""
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
        at, found = self._position, BATCH
        async with self._db.read() as tx:
            horizon = await self._db.horizon(tx)  # before the events: what is below it, we shall see
        while found == BATCH:
            async with self._db.read() as tx:
                logged = [log.row(one) for one in await tx.all(rows.AFTER, since=at, limit=BATCH)]
            for event in logged:
                await self._hand_to_peers(event)
                at = event.id
            found = len(logged)
            self._handed_out += found
        self._position = at if horizon is None else max(self._position, horizon - 1)

    async def _hand_to_peers(self, event: Logged) -> None:
        if event.repo_id is None:
            if event.kind in log.ENDS:
                await self._end_dead([one for one in self._peers if one.account_id == event.account_id])
            return
        peers = self._listeners.get(event.repo_id, set())
        late = [peer for peer in peers if peer.cursors.get(event.repo_id, event.id) < event.id]
        carried = event.repo_id in self.channels.repos
        if not late and not carried:
            return
        if event.changes_access:
            await self._ask_again([event.repo_id])
        told = Told(event)
        for peer in late:
            peer.offer(told)
        if carried:
            await self._carry(told.event)

    async def _carry(self, event: Event) -> None:
        """What the event means for channels."""
        match event.kind, event.data:
            case log.LIVE, {"branch_id": str(branch_id), "seq": int(seq)}:
                await self.channels.hand_out(branch_id, seq)
            case "ref.delete", {"type": "branch", "name": str(name)}:
                self.channels.end_branch(event.repo_id, name)


def _seen(found: Iterable[Row], accounts: Collection[str]) -> dict[tuple[str, str], Audience]:
    seen: dict[tuple[str, str], Audience] = {}
    for repo_id, owner_id, public, account_id, role in found:
        if public:
            for one in accounts:
                seen.setdefault((one, repo_id), "reader")
        if account_id in accounts:
            seen[account_id, repo_id] = audience_of(_role(role))
        if owner_id in accounts:
            seen[owner_id, repo_id] = "owner"
    return seen


def _role(word: str | None) -> Role | None:
    return word  # type: ignore[return-value]  # the column holds nothing else
