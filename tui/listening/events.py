"""Events of the repositories that screens show: one thread with one socket.

    following = Following(lambda: client.api, heard, state)
    following.follow([repo.id])
    following.close()

Without a socket the app asks only when the user refreshes.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from localstore.core.errors import Cancelled, SvcError
from svc.api import Api
from svc.http.bounds import Deadline, within
from tui.client import state_after
from tui.listening.backoff import Backoff

if TYPE_CHECKING:
    from svc.api.sync import SyncSocket

OPENING = 10.0  # seconds that opening a socket may take
LIVE = "live"  # the kind of event that no screen shows
MOST = 128  # repositories; of more the ones that were asked for longest ago are left out


class Following:
    """`heard(repo_id)` is called when a repository changed; `state(name)` with the state of the connection:
    `live` when the socket carries events, `online` when it does so no more, and the state after each attempt
    that fails. Both on this object's thread."""

    def __init__(
        self, open_api: Callable[[], Api], heard: Callable[[str], None], state: Callable[[str], None]
    ) -> None:
        self._open_api, self._heard, self._state = open_api, heard, state
        self._lock = threading.Lock()
        self._ended = threading.Event()
        self._repo_ids: dict[str, None] = {}  # the newest last
        self._socket: SyncSocket | None = None
        self._thread: threading.Thread | None = None

    def follow(self, repo_ids: Sequence[str]) -> None:
        """Listen to these repositories too. Returns at once."""
        with self._lock:
            if self._ended.is_set() or not repo_ids:
                return
            wanted = list(dict.fromkeys(repo_ids))[:MOST]
            fresh = [one for one in wanted if one not in self._repo_ids]
            for one in wanted:
                self._repo_ids.pop(one, None)
                self._repo_ids[one] = None
            gone = list(self._repo_ids)[:-MOST]
            for one in gone:
                del self._repo_ids[one]
            if self._socket is not None:
                for one in gone:
                    self._socket.unsubscribe(one)
                for one in fresh:
                    self._socket.subscribe(one)
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="events", daemon=True)
                self._thread.start()

    def close(self) -> None:
        with self._lock:
            self._ended.set()
            if self._socket is not None:
                self._socket.close()

    def _run(self) -> None:
        backoff = Backoff()
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
                backoff.worked()
                self._listen(socket)
            except Cancelled:
                return
            except SvcError as error:
                state = state_after(error)
                backoff.failed()
            finally:
                with self._lock:
                    self._socket = None
            if self._ended.is_set():
                return
            self._state(state)
            backoff.wait(self._ended)

    def _begin(self, socket: SyncSocket) -> bool:
        with self._lock:
            if self._ended.is_set():
                socket.close()
                return False
            self._socket = socket
            for one in reversed(self._repo_ids):  # what is shown now comes first
                socket.subscribe(one)
        return True

    def _listen(self, socket: SyncSocket) -> None:
        """Listen until the socket ends. On the first answer ask for what was missed."""
        from localstore.core.model.sync import Event, Hidden, Resync, Subscribed  # not before the first paint

        for event in socket:
            if isinstance(event, Subscribed):
                self._state("live")
                self._heard(event.repo_id)
            elif isinstance(event, Hidden):
                with self._lock:
                    self._repo_ids.pop(event.repo_id, None)
                    last = not self._repo_ids
                if last:
                    self._state("online")
            elif (isinstance(event, Event) and event.kind != LIVE) or isinstance(event, Resync):
                self._heard(event.repo_id)
