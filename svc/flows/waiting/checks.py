"""Watching the checks of one seal until they are done.

    verdict = Watcher(api, repo.id, subject, Options(required=True), show=table.show).run()

Over a socket where one can be had: a watcher that waits asks nothing. Else it reads again after each
interval. What an event says is shown at once; before a verdict everything is read once more.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Final, Literal

import msgspec

from localstore.core.errors import (
    NotFound,
    RateLimited,
    ServerMisbehaved,
    ServerUnreachable,
    SvcError,
    Unauthorized,
)
from localstore.core.model.collaboration import check as checks
from localstore.core.model.collaboration.check import SealCheck
from localstore.core.model.collaboration.run import state_of
from localstore.core.model.sync import Event, Hidden
from svc.api import Api
from svc.api.sync import SyncSocket
from svc.http.bounds import Deadline, within

INTERVAL = 10.0  # seconds between two reads without a socket
AGAIN = 0.5  # seconds before the first new attempt after the line was lost; doubles up to the interval
SUMMARIES = 3.0  # seconds within which what an event does not say is read, at random
FAILED: Final = ("fail", "cancel")

Outcome = Literal["passed", "failed", "pending", "stale"]
Show = Callable[[Sequence[SealCheck]], None]


class Options(msgspec.Struct, frozen=True):
    """`required`: only enabled checks count; `only`: the one of this name does. `fail_fast`: the first
    failure ends it. `interval`, `timeout`: seconds; None: however long it takes."""

    required: bool = False
    only: str | None = None
    fail_fast: bool = False
    interval: float = INTERVAL
    timeout: float | None = None


class Subject(msgspec.Struct, frozen=True):
    """What is watched: a seal, which stays the same to the end. `name`: what it is the head of. `head`: what
    that names by now, None if it names nothing any more; NotFound if it is gone. `moves`: whether an event
    may have moved it. Without them the seal stands for itself."""

    seal: str
    name: str = ""
    head: Callable[[], str | None] | None = None
    moves: Callable[[Event], bool] = lambda event: False


class Verdict(msgspec.Struct, frozen=True):
    """`items`: the checks that it is about. `moved_to`: of a stale one, the seal that its name has by now."""

    outcome: Outcome
    items: list[SealCheck]
    moved_to: str | None = None


def counted(items: Sequence[SealCheck], options: Options) -> list[SealCheck]:
    """Those that a verdict is about."""
    only = options.only and options.only.casefold()
    return [
        one for one in items if (one.required or not options.required) and only in (None, one.name.casefold())
    ]


def decided(items: Sequence[SealCheck], options: Options) -> Outcome | None:
    """What these checks amount to, None while that is open. No checks at all have passed."""
    states = [one.state for one in counted(items, options)]
    failed = any(state in FAILED for state in states)
    if failed and (options.fail_fast or "pending" not in states):
        return "failed"
    return None if "pending" in states else "passed"


def taken(items: Sequence[SealCheck], event: Event, seal: str) -> list[SealCheck] | None:
    """The checks after an event; None if it says nothing new of this seal. Events may be older than what was
    read: an attempt only goes on, and the next one counts."""
    said = event.data
    name, attempt = str(said.get("name", "")), said.get("attempt")
    if not event.kind.startswith("run.") or said.get("seal") != seal or not isinstance(attempt, int):
        return None
    state = state_of(str(said.get("status", "")), said.get("conclusion"))
    old = next((one for one in items if one.name.casefold() == name.casefold()), None)
    if old is not None and (attempt, state != "pending") <= (old.attempt, old.state != "pending"):
        return None
    again = old is not None and old.attempt == attempt
    now = SealCheck(
        name=name,
        state=state,
        required=old.required if old else False,
        attempt=attempt,
        summary=old.summary if old and again else None,
        details_url=old.details_url if old and again else None,
        seal_id=seal,
        started_at=old.started_at if old and again else None,
        completed_at=None,
        run_id=str(said.get("run", "")),
    )
    rest = [one for one in items if one is not old]
    return sorted([*rest, now], key=lambda one: one.name.casefold())


class Watcher:
    """Use `run`. `show` is called with the checks that count whenever they changed, `note` with a sentence
    when the line was lost."""

    def __init__(
        self,
        api: Api,
        repo_id: str,
        subject: Subject,
        options: Options,
        show: Show,
        note: Callable[[str], None] = lambda sentence: None,
    ) -> None:
        self._api, self._repo_id, self._subject, self._options = api, repo_id, subject, options
        self._show, self._note = show, note
        self._until = None if options.timeout is None else time.monotonic() + options.timeout
        self._items: list[SealCheck] = []
        self._shown = False
        self._read_all = False  # nothing has been taken from events since all was read
        self._read_at: float | None = None  # when to read what events did not say
        self._moved: str | None = None
        self._stale = False
        self._socket = api.signed_in  # whether to try one
        self._failures = 0  # in a row

    def run(self) -> Verdict:
        """Raises what ends it: Unauthorized once the session has ended, NotFound once the repository is
        hidden, and what the first read raises. A line that is lost later is tried again."""
        self._read()
        while True:
            outcome = decided(self._items, self._options)
            if self._stale:
                return self._verdict("stale")
            if outcome is not None and self._read_all:
                return self._verdict(outcome)
            if self._left() == 0.0:
                return self._verdict("pending")
            try:
                self._go_on(outcome)
            except SvcError as error:
                if not _passes(error):
                    raise
                self._lost(error)

    def _verdict(self, outcome: Outcome) -> Verdict:
        moved = self._moved if outcome == "stale" else None
        return Verdict(outcome, counted(self._items, self._options), moved)

    def _go_on(self, outcome: Outcome | None) -> None:
        with within(*self._bounds()):
            if outcome is not None:
                self._read()
            elif not self._socket:
                self._pause(self._options.interval)
                self._read()
            else:
                self._listen()

    def _listen(self) -> None:
        """Until there is something to decide, or the line is lost."""
        try:
            socket = self._api.sync.socket()
        except (ServerUnreachable, Unauthorized):
            self._read()  # which tells whether that is the end
            raise
        except SvcError:
            self._socket = False  # something between here and there lets no socket through
            self._read()
            return
        with socket:
            socket.subscribe(self._repo_id)
            while not self._stale and decided(self._items, self._options) is None and self._left() != 0.0:
                self._hear(socket)

    def _hear(self, socket: SyncSocket) -> None:
        due = self._read_at
        waits = [self._left(), None if due is None else max(due - time.monotonic(), 0.0)]
        try:
            event = socket.receive(min((one for one in waits if one is not None), default=None))
        except Unauthorized:
            self._read()  # a session that was renewed is none that has ended
            raise ServerUnreachable("the socket was closed") from None
        if isinstance(event, Hidden):
            raise NotFound("the repository is hidden by now, or gone")
        if isinstance(event, Event):
            self._take(event)
        elif event is not None or (due is not None and time.monotonic() >= due):
            self._failures = 0
            self._read()  # what happened before the socket listened

    def _take(self, event: Event) -> None:
        if event.kind.startswith("check.") or self._subject.moves(event):
            self._read()
            return
        items = taken(self._items, event, self._subject.seal)
        if items is None:
            return
        self._read_all = False
        self._read_at = self._read_at or time.monotonic() + _spread(SUMMARIES)
        self._put(items)

    def _read(self) -> None:
        """All checks of the seal, and what its name names by now."""
        found = self._api.send(checks.OF_SEAL, id=self._repo_id, seal_id=self._subject.seal)
        if self._subject.head is not None:
            self._moved = None
            with suppress(NotFound):
                self._moved = self._subject.head()
            self._stale = self._moved != self._subject.seal
        self._read_all, self._read_at = True, None
        self._put(found.items)

    def _put(self, items: list[SealCheck]) -> None:
        if items != self._items or not self._shown:
            self._items, self._shown = items, True
            self._show(counted(items, self._options))

    def _lost(self, error: SvcError) -> None:
        if self._left() == 0.0:
            return
        if self._failures == 0:
            self._note(f"{error.detail}; trying again")
        pause = min(AGAIN * 2**self._failures, self._options.interval)
        self._failures = min(self._failures + 1, 10)
        self._pause(_spread(pause))

    def _pause(self, seconds: float) -> None:
        left = self._left()
        time.sleep(seconds if left is None else min(seconds, left))

    def _left(self) -> float | None:
        """Seconds until it has taken too long; None: it never does."""
        return None if self._until is None else max(self._until - time.monotonic(), 0.0)

    def _bounds(self) -> list[Deadline]:
        left = self._left()
        return [] if left is None else [Deadline(left)]


def _spread(seconds: float) -> float:
    """A time between a half and all of it, so that many who lost one server do not come back at once."""
    return seconds * (0.5 + secrets.randbelow(501) / 1000)


def _passes(error: SvcError) -> bool:
    """Whether what failed may work later."""
    return isinstance(error, (ServerUnreachable, ServerMisbehaved, RateLimited)) or error.status >= 500
