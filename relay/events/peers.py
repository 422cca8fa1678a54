"""Listeners (peers) and their queues.

Every peer has a queue of limited length. If a peer reads too slowly, its queue is dropped. The peer is told
to load its repositories again (resync), and to download the live frontiers of its branches again (bootstrap).
Nothing waits for a peer.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import msgspec

from localstore.core.model.limits import KIB
from localstore.core.model.sync import Event, Gap, Hidden, People, Person, Refused, Resync
from relay.base.clock import now_ms
from relay.events.log import LEVEL, Audience, Logged

QUEUE, QUEUE_BYTES = 1000, 512 * KIB  # queued messages of one peer, and their bytes
AT_ONCE = 64 * KIB  # bytes sent to a slow reader before waiting for it
_encode = msgspec.json.encode


class QueuedEvent:
    """An event in the form that listeners receive, encoded once for all of them."""

    __slots__ = ("_text", "event", "level", "repo_id")

    def __init__(self, logged: Logged) -> None:
        self.event = to_wire(logged)
        self.level = LEVEL[logged.audience]
        self.repo_id = self.event.repo_id
        self._text: bytes | None = None

    @property
    def text(self) -> bytes:
        """The event as JSON."""
        if self._text is None:
            self._text = _encode(self.event)
        return self._text

    def lose(self, peer: Peer) -> None:
        peer.lost.add(self.repo_id)


def to_wire(logged: Logged) -> Event:
    """An event of a repository in the form that listeners receive."""
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


class Shared:
    """A message to many channels. It is encoded once, except for the channel's number. `body`: a JSON object
    with the other fields."""

    __slots__ = ("_body", "_tag", "_texts")

    def __init__(self, tag: str, body: bytes) -> None:
        self._tag, self._body = tag, body
        self._texts: dict[int, bytes] = {}

    def text(self, channel: int) -> bytes:
        text = self._texts.get(channel)
        if text is None:
            text = b'{"type":"%s","channel":%d,' % (self._tag.encode(), channel) + self._body[1:]
            self._texts[channel] = text
        return text


class Frame:
    """A live frame: the changes that bring a branch from the update number `after` to the update number
    `seq`. It has the fields of the message `Live` except the channel. `message` is None if the frame is too
    large to send; a listener then has to bootstrap (download the live frontier again)."""

    __slots__ = ("after", "branch_id", "message", "seq")

    def __init__(self, branch_id: str, after: int, seq: int, body: bytes | None) -> None:
        self.branch_id, self.after, self.seq = branch_id, after, seq
        self.message = None if body is None else Shared("live", body)


@dataclass(slots=True, eq=False)
class Channel:
    """The connection that carries the messages of a branch to one working copy.

    `seq`: number of the last update that was queued. `waiting`: live frames that arrived while the channel is
    being opened; None once it is open. `ended`: why the channel ended. `conn`, `who` and `device`: how its
    user is named to others on the branch, as in `Person`. `news`: people who arrived or left and are not yet
    announced here. It maps `conn` to the person who arrived, or to None for one who left.
    """

    number: int
    peer: Peer
    repo_id: str
    branch_id: str
    branch: str
    replica: int
    device_key_id: str
    conn: str
    who: str
    device: str
    seq: int = 0
    waiting: list[Frame] | None = field(default_factory=list)
    ended: Refused | None = None
    news: dict[str, Person | None] = field(default_factory=dict)

    def offer(self, frame: Frame) -> None:
        """Queue a live frame if it follows the last one that was queued. Otherwise drop the queue; the
        listener then has to bootstrap (download the live frontier again). While the channel is being opened,
        frames are kept for later."""
        if self.waiting is not None:
            self.waiting.append(frame)
            return
        if frame.seq <= self.seq:
            return
        fits, self.seq = frame.after == self.seq, frame.seq
        if self in self.peer.gaps:
            return  # it will be told of the number then
        if fits and frame.message is not None:
            self.peer.push(_OfBranch(self, frame.message))
        else:
            self.lag()

    def lag(self) -> None:
        """Drop the channel's queue; the listener then has to bootstrap (download the live frontier again)."""
        self.peer.gaps[self] = None
        self.peer.ready.set()

    def meet(self, message: Shared, people: Mapping[str, Person | None]) -> None:
        """Queue news about people who arrived or left the branch. If other messages are queued already, the
        news is kept and sent with the next message about people."""
        if self.peer.queue or self.news:
            self.news.update(people)
            self.peer.meeting[self] = None
            self.peer.ready.set()
        else:
            self.peer.push(_OfPeople(self, message, people))


class _OfBranch:
    """A live frame in the queue of a peer, for one of its channels."""

    __slots__ = ("_message", "channel", "repo_id")

    def __init__(self, channel: Channel, message: Shared) -> None:
        self.channel, self.repo_id, self._message = channel, channel.repo_id, message

    @property
    def text(self) -> bytes:
        return self._message.text(self.channel.number)

    def lose(self, peer: Peer) -> None:
        self.channel.lag()


class _OfPeople(_OfBranch):
    """Queued news about the people on a channel's branch."""

    __slots__ = ("_people",)

    def __init__(self, channel: Channel, message: Shared, people: Mapping[str, Person | None]) -> None:
        super().__init__(channel, message)
        self._people = people

    def lose(self, peer: Peer) -> None:
        self.channel.news = {**self._people, **self.channel.news}
        peer.meeting[self.channel] = None


@dataclass(slots=True, eq=False)
class Peer:
    """A listener: a session of an account. `account_id`: "" without an account. `most`: the highest level of
    events that it may see in any repository. `until`: the time in milliseconds at which it is closed; None
    for the end of its session.

    `cursors`: id of the last queued event, by repository. `levels`: level that the peer may see (see
    `relay.events.log.LEVEL`), by repository. `channels`: channels by their number. `gaps`: channels that lost
    live frames. `meeting`: channels with unsent news of people. `at_once`: a function that sends messages
    directly; it returns False if the reader has not received all earlier ones.
    """

    session_id: str | None
    account_id: str = ""
    most: Audience = "owner"
    until: int | None = None
    cursors: dict[str, int] = field(default_factory=dict)
    levels: dict[str, int] = field(default_factory=dict)
    queue: deque[QueuedEvent | _OfBranch] = field(default_factory=deque)
    queued: int = 0  # bytes
    lost: set[str] = field(default_factory=set)  # repositories to resync
    hidden: list[str] = field(default_factory=list)  # repositories to report as hidden, once
    channels: dict[int, Channel] = field(default_factory=dict)
    gaps: dict[Channel, None] = field(default_factory=dict)
    meeting: dict[Channel, None] = field(default_factory=dict)
    ended: list[Refused] = field(default_factory=list)  # ended channels to report, once
    at_once: Callable[[Sequence[bytes]], bool] | None = None
    closed: bool = False
    ready: asyncio.Event = field(default_factory=asyncio.Event)

    def offer(self, queued: QueuedEvent) -> None:
        """Queue an event of a repository to which the peer is subscribed. An event that the peer may not see
        is skipped. So is every event of a repository whose queue was dropped, until the peer is told to load
        it again."""
        event = queued.event
        cursor = self.cursors.get(event.repo_id)
        if cursor is None or event.id <= cursor:
            return
        self.cursors[event.repo_id] = event.id
        if queued.level > self.levels.get(event.repo_id, 0):
            return
        if event.repo_id not in self.lost:
            self.push(queued)
        self.ready.set()

    def push(self, item: QueuedEvent | _OfBranch) -> None:
        """Queue a message. If the queue is full, all of it is dropped. A channel's message is sent at once if
        nothing is queued, because waking a task for each of hundreds of peers takes longer than sending."""
        if isinstance(item, _OfBranch) and self._send_at_once(item.text):
            return
        if len(self.queue) >= QUEUE or self.queued >= QUEUE_BYTES:
            waiting, self.queue, self.queued = self.queue, deque(), 0
            for dropped in (*waiting, item):
                dropped.lose(self)
        else:
            self.queue.append(item)
            self.queued += len(item.text)
        self.ready.set()

    def _send_at_once(self, text: bytes) -> bool:
        if self.at_once is None or self.ready.is_set() or self.over:
            return False
        return self.at_once((text,))

    def sees(self, repo_id: str, audience: Audience | None) -> None:
        """Set the level of events that the peer sees in a repository from now on: reader, writer or owner. If
        `audience` is None, the peer may not see the repository, and its queued events are dropped."""
        if audience is not None:
            self.levels[repo_id] = self.level(audience)
            return
        self.forget(repo_id)
        self.hidden.append(repo_id)
        self.ready.set()

    def level(self, audience: Audience) -> int:
        """The level of events that the peer sees in a repository for which its account belongs to `audience`.
        It is never above the peer's own highest level (`most`)."""
        return min(LEVEL[audience], LEVEL[self.most])

    def forget(self, repo_id: str) -> None:
        """Stop listening to a repository and drop its queued events."""
        self.cursors.pop(repo_id, None)
        self.levels.pop(repo_id, None)
        self.lost.discard(repo_id)
        self._keep(lambda queued: not (isinstance(queued, QueuedEvent) and queued.repo_id == repo_id))

    def leave(self, channel: Channel) -> None:
        """End a channel of the peer and drop its queued live frames."""
        if self.channels.get(channel.number) is channel:
            del self.channels[channel.number]
        self.gaps.pop(channel, None)
        self.meeting.pop(channel, None)
        self._keep(lambda queued: isinstance(queued, QueuedEvent) or queued.channel is not channel)

    def _keep(self, is_kept: Callable[[QueuedEvent | _OfBranch], bool]) -> None:
        self.queue = deque(filter(is_kept, self.queue))
        self.queued = sum(len(queued.text) for queued in self.queue)

    def drain(self) -> list[bytes]:
        """Take messages out of the queue, as JSON texts of about AT_ONCE bytes at most. First come channels
        that ended and repositories that became hidden, then events and live frames. Last come what the peer
        has to load again, and news of people. The event `ready` stays set if messages are left."""
        texts = [_encode(end) for end in self.ended]
        texts += [_encode(Hidden(repo_id=repo_id)) for repo_id in self.hidden]
        self.ended, self.hidden = [], []
        taken = 0
        while self.queue and taken < AT_ONCE:
            texts.append(text := self.queue.popleft().text)
            taken += len(text)
        self.queued -= taken
        if self.queue:
            return texts
        texts += [_encode(Resync(repo_id=repo_id, id=self.cursors[repo_id])) for repo_id in sorted(self.lost)]
        texts += [_encode(Gap(channel=channel.number, seq=channel.seq)) for channel in self.gaps]
        texts += [_encode(_take_news(channel)) for channel in self.meeting]
        self.lost, self.gaps, self.meeting, self.queued = set(), {}, {}, 0
        self.ready.clear()
        return texts

    def take_frames(self) -> list[bytes]:
        """Take the queued live frames out of the queue and return them. Queued events are dropped."""
        self._keep(lambda queued: not isinstance(queued, QueuedEvent))
        self.lost, self.hidden = set(), []
        frames: list[bytes] = []
        while self.ready.is_set() and not self.closed:
            frames += self.drain()
        return frames

    @property
    def over(self) -> bool:
        return self.closed or (self.until is not None and now_ms() >= self.until)

    def close(self) -> None:
        self.closed = True
        self.ready.set()


def _take_news(channel: Channel) -> People:
    """Take the news about people that the channel has not received yet, and return it."""
    news, channel.news = channel.news, {}
    present = [person for person in news.values() if person is not None]
    return People(
        channel=channel.number, here=present, gone=[conn for conn, person in news.items() if person is None]
    )
