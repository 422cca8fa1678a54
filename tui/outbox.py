"""The outbox as the app uses it: it takes changes that the user makes, is sent, followed and shown."""

from __future__ import annotations

import sqlite3
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Literal, Protocol

from localstore.core.endpoint import Endpoint
from localstore.core.errors import SvcError
from localstore.outbox import QueuedAction
from svc.flows.outbox.actions import Report, SentByAnother, describe_action, describe_effect, text_of
from tui.asked import AskedApp
from tui.client import sentence
from tui.listening.news import SLOW, News
from tui.sending import Sending
from tui.text import cut_middle
from tui.wording import is_unreached, reason_unreached

if TYPE_CHECKING:
    from textual.timer import Timer
    from textual.worker import Worker

Sends = Literal["change", "asked", "timer"]  # why the outbox is sent

SEND_EVERY = 30.0  # seconds between attempts to send what waits
LOOK_EVERY = 1.0  # seconds between two looks at whether another process has changed the outbox
NAMED = 48  # columns of a change that a message names
LOOK_AGAIN = 3.0  # seconds after which the outbox is read again that another process was sending


class AskedByOutbox(AskedApp, Protocol):
    """What `AppOutbox` needs of the app: all that screens use, threads and timers."""

    draft: str  # the one that is being sent

    @property
    def screen(self) -> Any: ...

    @property
    def news(self) -> News: ...

    def call_from_thread(self, callback: Callable[..., Any], *arguments: Any) -> Any: ...

    def run_worker(self, work: Any, *, thread: bool, group: str, exit_on_error: bool) -> Worker[Any]: ...

    def set_timer(self, delay: float, callback: Callable[[], None]) -> Timer: ...

    def set_interval(self, interval: float, callback: Callable[[], None]) -> Timer: ...


class AppOutbox:
    """The outbox in the app. `sending`: puts changes into it and sends it, None if nothing can be changed.
    `entries`: what it holds, as of the last change."""

    def __init__(self, app: AskedByOutbox, sending: Sending | None) -> None:
        self._app, self.sending = app, sending
        self.entries: list[QueuedAction] = []
        self.sent: set[str] = set()  # ids of what this app has sent
        self._seen: object = None  # the state of the outbox when it was read last

    @property
    def signed_in(self) -> bool:
        """Whether changes can be put into the outbox, for the account of a session."""
        return self.sending is not None and self.sending.signed_in

    def begin(self) -> None:
        """Send what an earlier run of the app left in the outbox. From then on, read the outbox periodically,
        because other processes also use it."""
        self.send(by_user=False)
        self._app.set_interval(SEND_EVERY, self._send_again)
        self._app.set_interval(LOOK_EVERY, self._follow)

    def act(
        self, endpoint: Endpoint[Any], body: Any = None, query: Any = None, *, about: str, **path: str
    ) -> None:
        """Change something on the server: put the request into the outbox, send the outbox, and let the
        screen read its data again. `about`: OWNER/NAME of the repository. If the server refuses the change,
        the reason is shown, and the change stays in the outbox."""
        drafts, draft = self._app.drafts, self._app.draft

        def put(sending: Sending) -> None:
            sending.put(endpoint, body, query, about=about, **path)
            if drafts is not None and draft:
                drafts.keep(draft, "")

        self.queue(put)

    def queue(
        self,
        put: Callable[[Sending], object],
        queued: Callable[[], None] | None = None,
        done: str = "",
    ) -> None:
        """Call `put`, which adds something to the outbox. Call `queued` afterwards, and send the outbox.
        `done`: what is so once all of it was sent, for several changes that are one for the user."""
        self._change(put, queued=queued, done=done)

    def send(self, again: QueuedAction | None = None, by_user: bool = True) -> None:
        """Send the outbox. `again`: an action that the server has refused, and that is to be sent once more.
        `by_user`: the user asked for it. Otherwise the app says nothing about actions that still wait."""
        why: Sends = "asked" if by_user else "timer"
        self._change(lambda sending: sending.retry(again) if again else None, why=why)

    def look(self) -> None:
        """Read the outbox again and show what is in it, because the agent and commands of svc also add to it
        and send it."""
        sending, screen = self.sending, self._app.screen
        if sending is None:
            return

        def show(entries: list[QueuedAction]) -> None:
            if entries != self.entries:
                self._show(screen, entries)

        def work() -> None:
            with suppress(SvcError, sqlite3.Error):  # it may be closed by now
                entries = sending.entries()
                self._app.later(lambda: show(entries))

        # No worker: requests that a server does not answer may keep all threads of workers.
        threading.Thread(target=work, daemon=True).start()

    def _follow(self) -> None:
        """Read the outbox if any process has changed it since it was read last."""
        sending = self.sending
        if sending is not None and (stamp := sending.stamp()) != self._seen:
            self._seen = stamp
            self.look()

    def drop(self, entry: QueuedAction) -> None:
        self._change(lambda sending: sending.drop(entry), send=False)

    def close(self) -> None:
        if self.sending is not None:
            self.sending.close()

    def describe(self, prefix: str) -> list[str]:
        """Returns a description of each waiting action of the account whose API path begins with `prefix`."""
        return [describe_action(entry) for entry in self._waiting_below(prefix)]

    def texts(self, prefix: str) -> list[tuple[str, str]]:
        """Returns (description, text) of each waiting action of the account whose API path begins with
        `prefix`. Only comments have a text. For other actions it is ""."""
        return [(describe_action(entry), text_of(entry)) for entry in self._waiting_below(prefix)]

    def _waiting_below(self, prefix: str) -> list[QueuedAction]:
        """The queued actions of the account whose API path begins with `prefix`."""
        sending = self.sending
        return [
            entry
            for entry in self.entries
            if sending is not None
            and sending.is_mine(entry)
            and entry.state != "refused"
            and f"{entry.path}/".startswith(f"{prefix}/")
        ]

    def _change(
        self,
        change: Callable[[Sending], object],
        send: bool = True,
        queued: Callable[[], None] | None = None,
        why: Sends = "change",
        done: str = "",
    ) -> None:
        """Change the outbox on a thread: call `change`, then `queued`, and then send the outbox. With `send`
        False, do not send it. `why`: the reason why it is sent. `done`: what is so once it was sent."""
        sending, screen = self.sending, self._app.screen
        if sending is None:
            return

        def work() -> None:
            try:
                change(sending)
                self._app.call_from_thread(self._show, screen, sending.entries())
                if queued is not None:
                    self._app.call_from_thread(queued)
                report = self._send_noted(sending, screen, says=why != "timer") if send else Report()
            except SvcError as error:
                if why != "timer" or not isinstance(error, SentByAnother):
                    self._app.call_from_thread(self._say_refused, screen, error)
                self._app.call_from_thread(self._app.set_timer, LOOK_AGAIN, self.look)
                return
            self._app.call_from_thread(self._show_sent, sending, screen, report, why, done)

        self._app.run_worker(work, thread=True, group="outbox", exit_on_error=False)

    def _send_noted(self, sending: Sending, screen: Any, *, says: bool) -> Report:
        """Send the outbox, and let the light say if the server does not answer. `says`: `screen` says so too.
        Runs on a thread."""
        began = time.monotonic()
        self._app.later(lambda: self._app.news.note_request(began))
        answered = threading.Event()
        if says:
            self._app.later(lambda: self._say_queued_later(sending, screen, answered))
        try:
            return sending.send()
        finally:
            answered.set()
            self._app.later(lambda: self._app.news.note_answer(began))

    def _say_queued_later(self, sending: Sending, screen: Any, answered: threading.Event) -> None:
        self._app.set_timer(SLOW, lambda: self._say_queued(sending, screen, answered))

    def _say_queued(self, sending: Sending, screen: Any, answered: threading.Event) -> None:
        """Say that what the user has changed waits here, unless the server has answered."""
        own = self._own_waiting()
        if own and screen.remains and not answered.is_set():
            screen.say_unreached(_say_waiting(own), waits=True)

    def _show(self, screen: Any, entries: list[QueuedAction]) -> None:
        self.entries = entries
        current: Any = self._app.screen
        current.queue_changed()
        if screen.remains:
            screen.show_frame()

    def _own_waiting(self) -> list[QueuedAction]:
        """Returns the actions of this app's user that wait, and were not refused."""
        sending = self.sending
        return [
            entry
            for entry in self.entries
            if sending is not None and sending.is_own(entry) and entry.state != "refused"
        ]

    def _say_refused(self, screen: Any, error: SvcError) -> None:
        if not screen.remains:
            return
        own = self._own_waiting()
        if isinstance(error, SentByAnother) and own and self._app.news.state == "offline":
            screen.say_unreached(_say_waiting(own), waits=True)
        elif isinstance(error, SentByAnother):  # which is no fault
            screen.say("another app or command of svc sends what waits here at this moment", "dim")
        else:
            screen.say(sentence(error), "bad")

    def _show_sent(self, sending: Sending, screen: Any, report: Report, why: Sends, done: str = "") -> None:
        """Show what became of the actions in the outbox: refused, sent, or still waiting. Whether the
        connection is shown as online or offline depends only on actions of the account that is signed in. If
        its actions still wait, the user is told after each change. If actions of other accounts wait, the
        user is told only after asking for sending. `done`: what is so now, in place of the last effect."""
        entries = sending.entries()
        waiting = [entry for entry in entries if entry.state != "refused" and sending.is_mine(entry)]
        stopped = next((report.stopped.get((entry.origin, entry.account)) for entry in waiting), None)
        answered = any(sending.is_mine(entry) for entry in (*report.sent, *report.refused))
        self.sent.update(entry.id for entry in report.sent)
        if stopped or answered:
            self._app.news.state = "offline" if stopped else "online"
        self._show(screen, entries)
        if not screen.remains:
            return
        if report.refused:
            refused = next(
                (entry for entry in entries if entry.id == report.refused[0].id), report.refused[0]
            )
            by = "" if sending.is_own(refused) else " (queued elsewhere)"
            screen.say(f"refused: {describe_action(refused)}{by}: {refused.reason}; s lists it", "bad")
        elif stopped and why != "timer":
            own = list(filter(sending.is_own, waiting))
            why_not = reason_unreached(_without_retry(stopped))
            if is_unreached(stopped):
                screen.say_unreached(_say_waiting(own) if own else why_not, waits=bool(own))
            else:
                screen.say(f"{_say_waiting(own, why_not)}" if own else why_not, "warn")
        elif report.stopped and why == "asked":
            (origin, _), reason = next(iter(report.stopped.items()))
            screen.say(f"of another account, at {origin.partition('://')[2]}: {reason}", "warn")
        opening_actions = [
            entry for entry in report.sent if entry.id in report.numbers and sending.is_own(entry)
        ]
        if opening_actions and not report.refused and not stopped:
            title = opening_actions[-1].value["title"]
            screen.say(f"#{report.numbers[opening_actions[-1].id]} opened: {title}", "good")
        elif not report.refused and not stopped and screen.in_front:
            effects = [
                words for entry in report.sent if sending.is_own(entry) and (words := describe_effect(entry))
            ]
            if effects:
                more = f", and {len(effects) - 1} more" if len(effects) > 1 else ""
                screen.say_effect(done or effects[-1] + more)
        if report.sent:
            if not waiting:
                screen.drop_unreached()
            screen.news()

    def _send_again(self) -> None:
        if any(entry.state != "refused" for entry in self.entries):
            self.send(by_user=False)


def _say_waiting(own: Sequence[QueuedAction], why: str = "") -> str:
    """Returns a sentence about changes that wait here. `why`: the reason, "" if the server does not
    answer."""
    words = cut_middle(describe_action(own[-1]), NAMED)
    words += " waits here" if len(own) == 1 else f" and {len(own) - 1} more wait here"
    return f"{words}: {why}" if why else f"{words} until the server answers; s lists what waits"


def _without_retry(reason: str) -> str:
    """Returns why an action waits, without the advice to make the request again: the outbox does that."""
    from svc.http.answer import remedy_of

    for repeatable in (True, False):
        reason = reason.removesuffix(f"; {remedy_of(repeatable)}")
    return reason
