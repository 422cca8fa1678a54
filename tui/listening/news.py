"""Tracks the state of the connection, and listens for changes of the repositories that screens show."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Protocol, cast

from tui.asked import AskedApp
from tui.client import sentence, state_after
from tui.listening.events import Following

if TYPE_CHECKING:
    from textual.screen import Screen
    from textual.timer import Timer

NEWS_EVERY = 0.5  # seconds between an event and the request for its changes; events within are one
RESTS = 4  # times as long as the last request took, before news ask for its like again
LONG = 0.1  # seconds: a reading that takes longer waits for a pause between keys
PAUSE, NO_PAUSE = 1.0, 8.0  # seconds without a key that are a pause; that a reading waits for one at most
AGAIN_EVERY = 10.0  # seconds between two readings because the server answers again, at least
ATTENDED = 600.0  # seconds after a key in which somebody may look, so that a lost server is asked for often
SLOW = 2.0  # seconds without an answer, after which the light says so
RETURN_EVERY, RETURN_LATER = 2.0, 32.0  # seconds until a lost server is asked again, at most
NEWS_LATER = (3.0, 10.0, 30.0)  # seconds after which what the server does after an event is asked for


class AskedByNews(AskedApp, Protocol):
    """What `News` needs of the app: all that screens use, the stack of screens, and timers."""

    @property
    def screen_stack(self) -> list[Screen[Any]]: ...

    def set_timer(self, delay: float, callback: Callable[[], None]) -> Timer: ...


class News:
    """Listens to events while the user is signed in, and makes screens read their data again. `state`: the
    state of the connection, such as `live` (the names are in LIGHTS). `since`: when that state began."""

    def __init__(self, app: AskedByNews) -> None:
        self._app = app
        self._state, self.since = "unknown", ""
        self.reason = ""  # why the last request that failed did so
        self.following = Following(
            lambda: app.client.api,
            self._take_event,
            self._take_state,
            lambda api: app.client.renew(api.http.credential),
            lambda: time.monotonic() < app.key_at + ATTENDED,
        )
        self._pushed = ""  # how news come by themselves: live, polling or not
        self._news_due = self._later_due = False
        self._put_off = 0.0  # since when a reading waits for a pause between keys; 0: none does
        self._asks_return = False  # whether it is due to ask whether the server is back
        self._asked_return = 0  # how often that was asked
        self._was_away, self._read_again_at = False, -AGAIN_EVERY
        self._reads_again_later = False  # whether a reading is due because the server answers again
        self._asked_later = 0  # times since the last event
        self.took = 0.0  # seconds that the last reading took: a list of 10,000 has a hundred pages
        self._unanswered: list[float] = []  # since when the server owes an answer, by the monotonic clock
        self._shows: frozenset[str] = frozenset()  # repositories that the screen in front is about
        self._missed: set[str] = set()  # others that changed

    @property
    def state(self) -> str:
        return self._state

    @state.setter
    def state(self, state: str) -> None:
        if state == "online" and self._pushed:
            state = self._pushed
        if state != self._state:
            self._state = state
            self.since = datetime.fromtimestamp(self._app.clock(), UTC).isoformat()
        if state == "offline":
            self._was_away = True
            self._ask_return_later()
        elif state in ("online", "live", "polling") and self._was_away:
            self._was_away, self._asked_return = False, 0
            for screen in cast("list[Any]", self._app.screen_stack):
                if hasattr(screen, "server_answers"):
                    screen.server_answers()
            self._read_again()

    def _ask_return_later(self) -> None:
        """Ask after some time whether the server is back, unless whoever listens to events asks anyway."""
        if not self._asks_return and not self.following.listens:
            self._asks_return = True
            attended = time.monotonic() < self._app.key_at + ATTENDED
            pause = RETURN_EVERY * 2 ** (0 if attended else self._asked_return)
            self._asked_return += 1
            self._app.set_timer(min(RETURN_LATER, pause), self._ask_return)

    def _ask_return(self) -> None:
        self._asks_return = False
        if self._state == "offline" and not self.following.listens:
            self.ask_now(lambda error: None)

    def ask_now(self, heard: Callable[[BaseException | None], None]) -> None:
        """Ask the server for the user's repositories, only to see whether it answers. `heard`: called with
        the error, None if it answers."""

        def work() -> None:
            failure: BaseException | None = None
            try:
                self._app.client.fetch(self._app.repos)
            except Exception as error:
                failure = error
            self._app.later(lambda: tell(failure))

        def tell(error: BaseException | None) -> None:
            if error is not None:
                self.reason = sentence(error)
            self._show_state(state_after(error))
            heard(error)

        self._app.run_worker(work, thread=True, group="return", exclusive=True, exit_on_error=False)

    def _read_again(self) -> None:
        """Let screens read their data again, because the server answers again. Events of the time in between
        are lost, and what was opened then could not be read."""
        now = time.monotonic()
        self._app.outbox.send(by_user=False)
        if now >= self._read_again_at + AGAIN_EVERY:  # one request may fail for ever while others do not
            self._read_again_at = now
            self._news_soon()
        elif not self._reads_again_later:
            self._reads_again_later = True
            self._app.set_timer(self._read_again_at + AGAIN_EVERY - now, self._read_later)

    def _read_later(self) -> None:
        self._reads_again_later, self._read_again_at = False, time.monotonic()
        self._news_soon()

    def note_request(self, since: float) -> None:
        """Called when a request is sent. `since`: when, by the monotonic clock. If no answer arrives within
        SLOW seconds, the state of the connection becomes `slow`."""
        self._unanswered.append(since)
        self._app.set_timer(SLOW, lambda: self._waits(since))

    def note_answer(self, since: float) -> None:
        """Called when a request has ended. `since`: when it was sent, by the monotonic clock."""
        if since in self._unanswered:
            self._unanswered.remove(since)
        if self.state == "slow" and not self._unanswered:
            self._show_state("online")

    def _waits(self, since: float) -> None:
        if since in self._unanswered and self.state not in ("offline", "sign_in"):
            self._show_state("slow")

    def _show_state(self, state: str) -> None:
        self.state = state
        cast("Any", self._app.screen).show_frame()

    def follow(self, repo_ids: Sequence[str]) -> None:
        """Listen to events of the repositories that the screen in front shows. Does nothing while nobody is
        signed in."""
        self._shows = frozenset(repo_ids)
        if not self._app.outbox.signed_in:
            return
        if not self._missed.isdisjoint(repo_ids):
            self._news_soon()  # what came while another screen was in front
        self._missed -= self._shows
        self.following.follow(repo_ids)

    def _take_state(self, state: str) -> None:
        self._app.later(lambda: self._set_state(state))

    def _take_event(self, repo_id: str) -> None:
        self._app.later(lambda: self._news_of(repo_id))

    def _set_state(self, state: str) -> None:
        was, self._pushed = self._pushed, state if state in ("live", "polling") else ""
        if state == "online" and not was:  # a server that takes requests and no sockets
            return
        self._show_state(state)

    def _news_of(self, repo_id: str) -> None:
        if repo_id in self._shows:
            self._news_soon()
        else:
            self._missed.add(repo_id)

    def _news_soon(self) -> None:
        if not self._news_due:
            self._news_due = True
            self._app.set_timer(max(NEWS_EVERY, RESTS * self.took), self._ask_for_news)

    def _ask_for_news(self) -> None:
        now = time.monotonic()
        self._put_off = self._put_off or now
        quiet = now - self._app.key_at
        if self.took > LONG and quiet < PAUSE and now < self._put_off + NO_PAUSE:
            self._app.set_timer(PAUSE - quiet, self._ask_for_news)
            return
        self._news_due, self._put_off = False, 0.0
        screen = self._give_news()
        if screen.FOLLOWS_LATER:
            self._asked_later = 0
            self._ask_again()

    def _give_news(self) -> Any:
        """Make the screen in front read its data again, and return it. The screens below read theirs when
        they are in front again."""
        *below, screen = cast("list[Any]", self._app.screen_stack)
        for covered in below:
            covered.stale = True
        screen.news()
        return screen

    def _ask_again(self) -> None:
        if not self._later_due and self._asked_later < len(NEWS_LATER):
            self._later_due = True
            self._app.set_timer(NEWS_LATER[self._asked_later], self._ask_later)

    def _ask_later(self) -> None:
        """Make the screen read its data once more some time after an event, because the server fills inboxes
        with a delay."""
        self._later_due = False
        self._asked_later += 1
        if cast("Any", self._app.screen).FOLLOWS_LATER:
            self._give_news()
            self._ask_again()
