"""Presence: who is in which file on a branch. It is kept in memory, and announced to the listeners of the
branch and to other processes.

A person is present for HERE_LIVES seconds after the last message, or until the socket ends. News is announced
in batches. Other processes receive it by `Database.tell` and use the same expiry, so that people of a process
that died disappear. When a branch gets its first listener in a process, that process asks the other processes
who is present.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from time import monotonic

import msgspec

from localstore.core.encoding import hex_digest
from localstore.core.model.limits import HERE_A_SECOND, HERE_LIVES, PEOPLE, PEOPLE_EACH
from localstore.core.model.sync import Person, UserPlace
from relay.events.peers import Channel, Shared

TOLD_BYTES = 7000  # of one message to other processes: PostgreSQL takes 8000
_encode = msgspec.json.Encoder().encode


class _PeopleMessage(msgspec.Struct, omit_defaults=True):
    """A message between processes about the people on a branch. `here`: people who arrived or moved. `gone`:
    connections that ended. `ask`: asks the other processes to send all their people."""

    branch_id: str
    here: list[Person] = []
    gone: list[str] = []
    ask: bool = False


class _PeopleNews(msgspec.Struct):
    """The fields of the message `People` to clients, except the channel."""

    here: list[Person]
    gone: list[str]


_decoder = msgspec.json.Decoder(_PeopleMessage)


@dataclass(slots=True, eq=False)
class _Present:
    """A person who is present on a branch. `channel`: the channel whose end removes the person. It is None
    for a person of another process, and for a client that polls. `far`: whether the person is connected to
    another process."""

    person: Person
    channel: Channel | None
    far: bool
    end: asyncio.TimerHandle


@dataclass(slots=True)
class _Room:
    """The people on a branch. `news`: people who arrived, moved or left and were not yet announced to the
    listeners of this process. `words`: people of this process who were not yet announced to other
    processes."""

    people: dict[str, _Present] = field(default_factory=dict)
    news: dict[str, Person | None] = field(default_factory=dict)
    words: dict[str, Person | None] = field(default_factory=dict)
    announced_at: float = 0.0
    telling: asyncio.TimerHandle | None = None


@dataclass(slots=True)
class _Pace:
    """Limits how often the position of a channel's user is announced. `at`: when it was last announced.
    `place`: a newer position, which waits until it may be announced; None if there is none."""

    at: float = 0.0
    place: UserPlace | None = None
    later: asyncio.TimerHandle | None = None


def conn_of(branch_id: str, replica: int) -> str:
    """The public id of a working copy on a branch; it stays the same when the working copy connects again."""
    return hex_digest(f"{branch_id} {replica}".encode())[:16]


class People:
    """Knows who is present on the branches that have listeners in one process. `listeners`: a function that
    returns the open channels of a branch. `tell`: a function that sends a message to other processes."""

    def __init__(self, listeners: Callable[[str], Iterable[Channel]], tell: Callable[[str], None]) -> None:
        self._listeners = listeners
        self._tell_others = tell
        self._rooms: dict[str, _Room] = {}
        self._paces: dict[Channel, _Pace] = {}

    def set_place(self, channel: Channel, place: UserPlace) -> None:
        """Record in which file and line the channel's user is. If messages come too often, only the last is
        announced."""
        pace = self._paces.setdefault(channel, _Pace())
        pace.place = place
        if pace.later is None:
            wait = max(0.0, pace.at + 1 / HERE_A_SECOND - monotonic())
            if wait:
                pace.later = asyncio.get_running_loop().call_later(wait, self._publish_place, channel, pace)
            else:
                self._publish_place(channel, pace)

    def set_place_of_poll(self, channel: Channel, place: UserPlace) -> None:
        """Record in which file and line a polling user is. The user stays listed for HERE_LIVES seconds."""
        self._put_person(channel.branch_id, _to_person(channel, place), None, False)

    def begin(self, branch_id: str) -> None:
        """Ask other processes for the people of a branch. Called when the branch gets its first listener."""
        self._tell_others(_encode(_PeopleMessage(branch_id, ask=True)).decode())

    def leave(self, channel: Channel) -> None:
        """Remove the channel's user, because the channel has ended."""
        pace = self._paces.pop(channel, None)
        if pace is not None and pace.later is not None:
            pace.later.cancel()
        room = self._rooms.get(channel.branch_id)
        present = room.people.get(channel.conn) if room else None
        if present is not None and present.channel is channel:
            self._remove(channel.branch_id, channel.conn)

    def end(self, branch_id: str) -> None:
        """Forget the people of other processes on a branch. Called after its last listener left."""
        room = self._rooms.get(branch_id)
        for conn in [conn for conn, present in room.people.items() if present.far] if room else ():
            self._remove(branch_id, conn)

    def everybody(self, channel: Channel) -> list[Person]:
        """The people on the branch except the channel's user."""
        room = self._rooms.get(channel.branch_id)
        return (
            [present.person for conn, present in room.people.items() if conn != channel.conn] if room else []
        )

    def handle_message(self, text: str) -> None:
        """Handle a message from another process."""
        try:
            word = _decoder.decode(text)
        except msgspec.MsgspecError:
            return  # from a process of another version
        room = self._rooms.get(word.branch_id)
        if word.ask and room is not None:
            room.words.update({c: present.person for c, present in room.people.items() if not present.far})
            self._announce_soon(word.branch_id, room)
        if not any(True for _ in self._listeners(word.branch_id)):
            return
        for person in word.here:
            self._put_person(word.branch_id, person, None, True)
        for conn in word.gone:
            present = room.people.get(conn) if room else None
            if present is not None and present.far:
                self._remove(word.branch_id, conn)

    def stop(self) -> None:
        for pace in self._paces.values():
            if pace.later is not None:
                pace.later.cancel()
        for room in self._rooms.values():
            if room.telling is not None:
                room.telling.cancel()
            for present in room.people.values():
                present.end.cancel()
        self._rooms.clear()

    def _publish_place(self, channel: Channel, pace: _Pace) -> None:
        place, pace.place, pace.later, pace.at = pace.place, None, None, monotonic()
        if place is not None:
            self._put_person(channel.branch_id, _to_person(channel, place), channel, False)

    def _put_person(self, branch_id: str, person: Person, channel: Channel | None, far: bool) -> None:
        room = self._rooms.setdefault(branch_id, _Room())
        before = room.people.get(person.conn)
        if before is None and len(room.people) >= PEOPLE:
            return
        if before is not None:
            before.end.cancel()
        end = asyncio.get_running_loop().call_later(HERE_LIVES, self._remove, branch_id, person.conn)
        room.people[person.conn] = _Present(person, channel, far, end)
        if before is None or before.person != person:
            room.news[person.conn] = person
        if not far:
            room.words[person.conn] = person
        self._announce_soon(branch_id, room)

    def _remove(self, branch_id: str, conn: str) -> None:
        room = self._rooms[branch_id]
        present = room.people.pop(conn)
        present.end.cancel()
        room.news[conn] = None
        if not present.far:
            room.words[conn] = None
        self._announce_soon(branch_id, room)

    def _announce_soon(self, branch_id: str, room: _Room) -> None:
        """Announce soon who arrived, moved or left on a branch, at most once in PEOPLE_EACH seconds."""
        if room.telling is None:
            wait = max(0.0, room.announced_at + PEOPLE_EACH - monotonic())
            room.telling = asyncio.get_running_loop().call_later(wait, self._announce, branch_id, room)

    def _announce(self, branch_id: str, room: _Room) -> None:
        room.telling, room.announced_at = None, monotonic()
        news, room.news = room.news, {}
        words, room.words = room.words, {}
        if not room.people and self._rooms.get(branch_id) is room:
            del self._rooms[branch_id]
        if news:
            self._tell_listeners(branch_id, news)
        for word in _split_words(branch_id, words):
            self._tell_others(word)

    def _tell_listeners(self, branch_id: str, news: dict[str, Person | None]) -> None:
        shared = _to_shared(news)
        for channel in self._listeners(branch_id):
            if channel.waiting is not None:
                continue  # it receives everybody when it has opened
            if channel.conn not in news:
                channel.meet(shared, news)
            elif len(news) > 1:
                others = {conn: person for conn, person in news.items() if conn != channel.conn}
                channel.meet(_to_shared(others), others)


def _to_person(channel: Channel, place: UserPlace) -> Person:
    return Person(
        conn=channel.conn,
        who=channel.who,
        device=channel.device,
        kind="person" if place.turn is None else "agent",
        path=place.path,
        line=place.line,
        col=place.col,
        state=place.state,
    )


def _to_shared(news: dict[str, Person | None]) -> Shared:
    present = [person for person in news.values() if person is not None]
    return Shared(
        "people", _encode(_PeopleNews(present, [conn for conn, person in news.items() if person is None]))
    )


def _split_words(branch_id: str, words: dict[str, Person | None]) -> Iterable[str]:
    """Encode changes of the people on a branch as messages to other processes. There are several messages if
    one would be too long. `words`: connection → person, or None for a person who left."""
    word, size = _PeopleMessage(branch_id, [], []), 0
    for conn, person in words.items():
        length = len(conn) if person is None else len(_encode(person))
        if size and size + length > TOLD_BYTES:
            yield _encode(word).decode()
            word, size = _PeopleMessage(branch_id, [], []), 0
        size += length + 3
        if person is None:
            word.gone.append(conn)
        else:
            word.here.append(person)
    if size:
        yield _encode(word).decode()
