"""Those who listen: what each may hear, and what waits for it.

Every peer has a bounded queue: one that reads too slowly loses its events and is told to resync; nobody waits
for it.
"""

from __future__ import annotations

import asyncio
from collections import deque
from dataclasses import dataclass, field

import msgspec

from localstore.core.model.sync import Event, Hidden, Resync
from relay.base.clock import now_ms
from relay.events.log import LEVEL, Audience, Logged

QUEUE = 1000  # events that wait for one peer
_encode = msgspec.json.encode


class Told:
    """An event as all who hear of it get it: made into text once."""

    __slots__ = ("_text", "event", "level")

    def __init__(self, logged: Logged) -> None:
        self.event = to_wire(logged)
        self.level = LEVEL[logged.audience]
        self._text: bytes | None = None

    @property
    def text(self) -> bytes:
        """JSON."""
        if self._text is None:
            self._text = _encode(self.event)
        return self._text


def to_wire(logged: Logged) -> Event:
    """An event of a repository in its wire form."""
    return Event(
        id=logged.id,
        repo_id=logged.repo_id or "",
        kind=logged.kind,
        data=logged.fields(),
        actor=logged.actor,
        device_key_id=logged.device_key_id,
        turn=logged.turn,
        number=logged.number,
    )


@dataclass(slots=True, eq=False)
class Peer:
    """One listener: a session of an account ("" for nobody), which hears at most `most` until `until`
    (milliseconds; None: until its session ends). `cursors`: repository → the last event that was queued for
    it. `levels`: repository → what it may hear there (see `relay.events.log.LEVEL`)."""

    session_id: str | None
    account_id: str = ""
    most: Audience = "owner"
    until: int | None = None
    cursors: dict[str, int] = field(default_factory=dict)
    levels: dict[str, int] = field(default_factory=dict)
    queue: deque[Told] = field(default_factory=deque)
    lost: set[str] = field(default_factory=set)  # repositories to resync
    hidden: list[str] = field(default_factory=list)  # to be told so, once
    closed: bool = False
    ready: asyncio.Event = field(default_factory=asyncio.Event)

    def offer(self, told: Told) -> None:
        """Queue an event that this peer may hear, or give up on the queue when it is full."""
        event = told.event
        cursor = self.cursors.get(event.repo_id)
        if cursor is None or event.id <= cursor:
            return
        self.cursors[event.repo_id] = event.id
        if told.level > self.levels.get(event.repo_id, 0):
            return
        if len(self.queue) >= QUEUE:
            self.lost.update(waiting.event.repo_id for waiting in self.queue)
            self.lost.add(event.repo_id)
            self.queue.clear()
        elif event.repo_id not in self.lost:
            self.queue.append(told)
        self.ready.set()

    def sees(self, repo_id: str, audience: Audience | None) -> None:
        """From now on it hears this much of a repository; None: nothing, nor of what waits."""
        if audience is not None:
            self.levels[repo_id] = min(LEVEL[audience], LEVEL[self.most])
            return
        self.forget(repo_id)
        self.hidden.append(repo_id)
        self.ready.set()

    def forget(self, repo_id: str) -> None:
        """Listen to a repository no more; what waits of it is dropped."""
        self.cursors.pop(repo_id, None)
        self.levels.pop(repo_id, None)
        self.lost.discard(repo_id)
        self.queue = deque(told for told in self.queue if told.event.repo_id != repo_id)

    def take(self) -> list[bytes]:
        """What waits (`ready`), as JSON texts: repositories it sees no more, events in order, and the
        repositories whose events were lost."""
        found = [_encode(Hidden(repo_id=one)) for one in self.hidden]
        found += [told.text for told in self.queue]
        found += [_encode(Resync(repo_id=one, id=self.cursors[one])) for one in sorted(self.lost)]
        self.hidden, self.lost = [], set()
        self.queue.clear()
        self.ready.clear()
        return found

    @property
    def over(self) -> bool:
        return self.closed or (self.until is not None and now_ms() >= self.until)

    def close(self) -> None:
        self.closed = True
        self.ready.set()
