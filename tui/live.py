"""Events of the repository on the screen: one thread with one socket.

    following = Following(lambda: client.api, heard, state)
    following.follow(repo.id)
    following.close()

Without a socket the app asks only when the user refreshes.
"""

from __future__ import annotations

import secrets
import threading
from collections.abc import Callable

from localstore.core.errors import Cancelled, SvcError
from localstore.core.model.sync import Event, Hidden, Resync, Subscribed
from svc.api import Api
from svc.api.sync import Heard, SyncSocket
from svc.http.bounds import Deadline, within
from tui.client import state_after

OPENING = 10.0  # seconds that opening a socket may take
FIRST, LONGEST = 0.5, 30.0  # seconds; what is waited after an attempt is double the wait before
LIVE = "live"  # the kind of event that no screen shows


class Following:
    """`heard()` is called when the repository changed; `state(name)` with the state of the connection: `live`
    when the socket carries events, `online` when it does so no more, and the state after each attempt that
    fails. Both on this object's thread."""

    def __init__(
        self, open_api: Callable[[], Api], heard: Callable[[], None], state: Callable[[str], None]
    ) -> None:
        self._open_api, self._heard, self._state = open_api, heard, state
        self._lock = threading.Lock()
        self._ended = threading.Event()
        self._repo_id: str | None = None
        self._socket: SyncSocket | None = None
        self._thread: threading.Thread | None = None

    def follow(self, repo_id: str) -> None:
        """Listen to this repository instead of the current one. Returns at once."""
        with self._lock:
            before, self._repo_id = self._repo_id, repo_id
            if repo_id == before or self._ended.is_set():
                return
            if self._socket is not None:
                if before is not None:
                    self._socket.unsubscribe(before)
                self._socket.subscribe(repo_id)
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="events", daemon=True)
                self._thread.start()

    def close(self) -> None:
        with self._lock:
            self._ended.set()
            if self._socket is not None:
                self._socket.close()

    def _run(self) -> None:
        wait = FIRST
        while not self._ended.is_set():
            state = "online"
            try:
                with within(Deadline(OPENING)):
                    api = self._open_api()
                    if not api.signed_in:
                        return
                    socket = api.sync.socket()
                if not self._begin(socket):
                    return
                wait = FIRST
                self._listen(socket)
            except Cancelled:
                return
            except SvcError as error:
                state = state_after(error)
                wait = min(LONGEST, wait * 2)
            finally:
                with self._lock:
                    self._socket = None
            if self._ended.is_set():
                return
            self._state(state)
            self._ended.wait(wait * secrets.SystemRandom().uniform(0.8, 1.2))  # apart from others

    def _begin(self, socket: SyncSocket) -> bool:
        with self._lock:
            if self._ended.is_set() or self._repo_id is None:
                socket.close()
                return False
            self._socket = socket
            socket.subscribe(self._repo_id)
        return True

    def _listen(self, socket: SyncSocket) -> None:
        """Listen until the socket ends. On the first answer ask for what was missed."""
        for event in socket:
            if isinstance(event, Subscribed):
                if event.repo_id == self._repo_id:
                    self._state("live")
                    self._heard()
            elif isinstance(event, Hidden):
                self._state("online")
            elif self._concerns(event):
                self._heard()

    def _concerns(self, event: Heard) -> bool:
        if isinstance(event, Event):
            return event.repo_id == self._repo_id and event.kind != LIVE
        return isinstance(event, Resync)
