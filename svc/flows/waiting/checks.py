"""Watches the checks of one seal until they are completed.

    verdict = Watcher(api, repo.id, subject, Options(required=True), show=table.show).run()

While the socket works, the server reports changes as events. Otherwise the checks are read again after each
interval. Changes are shown at once. Before the result is returned, everything is read once more."""

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
from localstore.core.model import check as checks
from localstore.core.model.check import SealCheck
from localstore.core.model.run import state_of
from localstore.core.model.sync import Event, Hidden
from svc.api import Api
from svc.api.sync import SyncSocket
from svc.http.bounds import Deadline, within

INTERVAL = 10.0  # seconds between two reads without a socket
APPEAR = 60.0  # seconds in which the first check of a seal is waited for
AGAIN = 0.5  # seconds before the first retry after a lost connection; doubles up to the interval
SUMMARIES = 3.0  # random delay at most, in seconds, before reading what events leave out
FAILED: Final = ("fail", "cancel")

Outcome = Literal["passed", "failed", "pending", "stale", "none"]
Show = Callable[[Sequence[SealCheck]], None]


class Options(msgspec.Struct, frozen=True):
    """How to watch checks. `required` is True to count only required (that is, enabled) checks. `only` names
    the only check to count. `fail_fast` is True to stop at the first failure. `interval` is the number of
    seconds between two readings. `timeout` is in seconds, or None for no limit. `appear` is the number of
    seconds to wait for the first check if there is none."""

    required: bool = False
    only: str | None = None
    fail_fast: bool = False
    interval: float = INTERVAL
    timeout: float | None = None
    appear: float = APPEAR


class Subject(msgspec.Struct, frozen=True):
    """The seal whose checks are watched. `name` is the branch or proposal that has it as its newest seal.

    `head` is a function that asks for the newest seal again. It returns None if the branch has no seal, and
    raises NotFound if the branch was deleted. `moves` returns whether an event may have changed the newest
    seal. If `head` is None, the checks of this seal are watched even if the branch gets a newer seal."""

    seal: str
    name: str = ""
    head: Callable[[], str | None] | None = None
    moves: Callable[[Event], bool] = lambda event: False


class Verdict(msgspec.Struct, frozen=True):
    """The result of watching checks. `items` are the checks that counted. `outcome` is `passed`, `failed`,
    `pending` if the time was over, or `none` if there were no checks. It is `stale` if the branch or proposal
    has another seal now. `moved_to` is that seal, or None if the branch was deleted."""

    outcome: Outcome
    items: list[SealCheck]
    moved_to: str | None = None


def select_counted(items: Sequence[SealCheck], options: Options) -> list[SealCheck]:
    """Return the checks that decide the result, by the options `required` and `only`."""
    only = options.only and options.only.casefold()
    return [
        check
        for check in items
        if (check.required or not options.required) and only in (None, check.name.casefold())
    ]


def decide_outcome(items: Sequence[SealCheck], options: Options) -> Outcome | None:
    """Return whether the checks passed or failed. Returns None while some are pending, and the text "none" if
    there is no check that counts."""
    states = [check.state for check in select_counted(items, options)]
    if not states:
        return "none"
    failed = any(state in FAILED for state in states)
    if failed and (options.fail_fast or "pending" not in states):
        return "failed"
    return None if "pending" in states else "passed"


def apply_event(items: Sequence[SealCheck], event: Event, seal: str) -> list[SealCheck] | None:
    """Return the checks after applying an event to them. None if the event says nothing new about this seal.
    An event can be older than the checks, so an older attempt never replaces a newer one."""
    data = event.data
    name, attempt = str(data.get("name", "")), data.get("attempt")
    if not event.kind.startswith("run.") or data.get("seal") != seal or not isinstance(attempt, int):
        return None
    state = state_of(str(data.get("status", "")), data.get("conclusion"))
    old = next((check for check in items if check.name.casefold() == name.casefold()), None)
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
        run_id=str(data.get("run", "")),
    )
    rest = [check for check in items if check is not old]
    return sorted([*rest, now], key=lambda check: check.name.casefold())


class Watcher:
    """Watches checks until it is decided whether they passed (`run`). `show` is called with the checks that
    count, whenever they change. `note` is called with a sentence when the connection was lost."""

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
        self._appear_until = time.monotonic() + options.appear
        self._items: list[SealCheck] = []
        self._has_shown = False
        self._read_all = False  # whether no event was applied since everything was read
        self._read_at: float | None = None  # when to read what events left out
        self._moved: str | None = None
        self._stale = False
        self._socket = api.signed_in  # whether to try one
        self._failures = 0  # in a row

    def run(self) -> Verdict:
        """Watch the checks until it is decided whether they passed, and return the result. The first reading
        of the checks may raise any error. After that, a lost connection is opened again. Raises Unauthorized
        when the session has ended, NotFound when the repository is hidden."""
        self._read()
        while True:
            outcome = self._outcome_so_far()
            if self._stale:
                return self._verdict("stale")
            if outcome is not None and self._read_all:
                return self._verdict(outcome)
            if self._seconds_left() == 0.0:
                return self._verdict("pending")
            try:
                self._go_on(outcome)
            except SvcError as error:
                if not _is_temporary(error):
                    raise
                self._handle_lost_line(error)

    def _outcome_so_far(self) -> Outcome | None:
        """Return the outcome of the checks as they were last read. Returns None while it is undecided. If
        there are no checks yet, it is undecided for `Options.appear` seconds."""
        outcome = decide_outcome(self._items, self._options)
        return None if outcome == "none" and time.monotonic() < self._appear_until else outcome

    def _verdict(self, outcome: Outcome) -> Verdict:
        moved = self._moved if outcome == "stale" else None
        return Verdict(outcome, select_counted(self._items, self._options), moved)

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
        """Receive events until it is decided whether the checks passed, or until the connection is lost."""
        try:
            socket = self._api.sync.socket()
        except (ServerUnreachable, Unauthorized):
            self._read()  # raises if the session has really ended
            raise
        except SvcError:
            self._socket = False  # something on the way blocks sockets
            self._read()
            return
        with socket:
            socket.subscribe(self._repo_id)
            while not self._stale and self._outcome_so_far() is None and self._seconds_left() != 0.0:
                self._hear(socket)

    def _hear(self, socket: SyncSocket) -> None:
        due = self._read_at
        waits = [self._next_look(), None if due is None else max(due - time.monotonic(), 0.0)]
        try:
            event = socket.receive(min((seconds for seconds in waits if seconds is not None), default=None))
        except Unauthorized:
            self._read()  # raises unless the session was only renewed
            raise ServerUnreachable("the socket was closed") from None
        if isinstance(event, Hidden):
            raise NotFound("the repository is hidden by now, or gone")
        if isinstance(event, Event):
            self._take(event)
        elif event is not None or (due is not None and time.monotonic() >= due):
            self._failures = 0
            self._read()  # for events before the subscription

    def _take(self, event: Event) -> None:
        if event.kind.startswith("check.") or self._subject.moves(event):
            self._read()
            return
        items = apply_event(self._items, event, self._subject.seal)
        if items is None:
            return
        self._read_all = False
        self._read_at = self._read_at or time.monotonic() + _spread(SUMMARIES)
        self._put(items)

    def _read(self) -> None:
        """Ask the server for all checks of the seal, and for the newest seal of the branch or proposal."""
        answer = self._api.send(checks.OF_SEAL, id=self._repo_id, seal_id=self._subject.seal)
        if self._subject.head is not None:
            self._moved = None
            with suppress(NotFound):
                self._moved = self._subject.head()
            self._stale = self._moved != self._subject.seal
        self._read_all, self._read_at = True, None
        self._put(answer.items)

    def _put(self, items: list[SealCheck]) -> None:
        if items != self._items or not self._has_shown:
            self._items, self._has_shown = items, True
            self._show(select_counted(items, self._options))

    def _handle_lost_line(self, error: SvcError) -> None:
        if self._seconds_left() == 0.0:
            return
        if self._failures == 0:
            self._note(f"{error.detail}; trying again")
        pause = min(AGAIN * 2**self._failures, self._options.interval)
        self._failures = min(self._failures + 1, 10)
        self._pause(_spread(pause))

    def _pause(self, seconds: float) -> None:
        remaining = self._next_look()
        time.sleep(seconds if remaining is None else min(seconds, remaining))

    def _seconds_left(self) -> float | None:
        """Seconds until the timeout; None without a timeout."""
        return None if self._until is None else max(self._until - time.monotonic(), 0.0)

    def _next_look(self) -> float | None:
        """Return how many seconds to wait for an event at most: until the timeout, or until the wait for a
        first check ends. None means no limit."""
        waits = [] if (remaining := self._seconds_left()) is None else [remaining]
        if decide_outcome(self._items, self._options) == "none":
            waits.append(max(self._appear_until - time.monotonic(), 0.0))
        return min(waits, default=None)

    def _bounds(self) -> list[Deadline]:
        remaining = self._seconds_left()
        return [] if remaining is None else [Deadline(remaining)]


def _spread(seconds: float) -> float:
    """Return a random time between half of `seconds` and `seconds`. So the clients of one server do not all
    reconnect at the same moment."""
    return seconds * (0.5 + secrets.randbelow(501) / 1000)


def _is_temporary(error: SvcError) -> bool:
    """Return whether the same request may succeed later."""
    return isinstance(error, (ServerUnreachable, ServerMisbehaved, RateLimited)) or error.status >= 500
