"""Sends the outbox (actions that wait for a server) when a server can be reached again, and when a command
has queued an action."""

from __future__ import annotations

import threading
from collections.abc import Callable

from localstore.core.errors import SvcError, Unauthorized
from localstore.home import Home
from svc.api import Api, connect
from svc.flows.outbox.actions import describe_action, has_entries, replay, using_outbox
from svc.http.session import Sessions

AGAIN_SECONDS = 60.0  # after which an action without an answer is sent again


class Sender:
    """A thread that sends the outbox, and sleeps while the outbox is empty. `wake` makes it send now; `close`
    ends it."""

    def __init__(self, home: Home, sessions: Sessions, log: Callable[[str], None]) -> None:
        self._home, self._sessions, self._log = home, sessions, log
        self._woken, self._closing = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True, name="sender")
        self._thread.start()
        self._woken.set()

    def wake(self) -> None:
        """Send the outbox now."""
        self._woken.set()

    def close(self) -> None:
        self._closing.set()
        self._woken.set()

    def _run(self) -> None:
        waits = False
        while not self._closing.is_set():
            self._woken.wait(AGAIN_SECONDS if waits else None)
            self._woken.clear()
            if not self._closing.is_set():
                waits = self._send()

    def _send(self) -> bool:
        """Send the outbox. Returns whether actions are left."""
        if not has_entries(self._home):
            return False
        try:
            with using_outbox(self._home) as outbox:
                report = replay(outbox, self._home, self._connect)
                waits = any(entry.state != "refused" for entry in outbox.list())
        except SvcError as error:  # another process is sending
            self._log(f"outbox: {error.detail}")
            return True
        except Exception as error:  # a bug must not end the thread
            self._log(f"outbox: {type(error).__name__}: {error}")
            return True
        for entry in report.sent:
            self._log(f"sent: {describe_action(entry)}")
        for entry in report.refused:
            self._log(f"refused: {describe_action(entry)}")
        return waits

    def _connect(self, origin: str, account: str) -> Api:
        session = self._sessions.find(origin)
        if session is None or session.user_id != account:
            raise Unauthorized(f"these actions are another account's on {origin}")
        return connect(origin, self._sessions)
