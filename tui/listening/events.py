"""Listens to events of the repositories that screens show, on one thread with one WebSocket. If no socket can
be opened, it polls.

    following = Following(lambda: client.api, heard, state, lambda api: client.renew(api.http.credential))
    following.follow([repo.id])
    following.close()

It listens only while the user is signed in."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from localstore.core.errors import Cancelled, SvcError
from svc.api import Api
from svc.http.bounds import Cancel, Deadline, within
from tui.client import state_after
from tui.listening.backoff import LONGEST, Backoff

if TYPE_CHECKING:
    from svc.api.sync import SyncSocket

HURRIED = 1.5  # seconds between two tries while somebody looks at the screen
OPENING = 10.0  # seconds that opening a socket may take, and a poll beyond its wait
SOCKET_TRIES = 2  # failures in a row before polls are tried
POLL_SECONDS = 10  # that a poll waits for events
POLL_PAUSE = 0.5  # seconds between two polls
SOCKET_SOON, SOCKET_EVERY = 10.0, 60.0  # seconds between two tries of a socket while polling
SOON_TRIES = 12  # after which they are rarer
LIVE = "live"  # the kind of event that no screen shows
MOST = 128  # repositories; of more the ones that were asked for longest ago are left out


class Following:
    """Listens to events of repositories. `heard(repo_id)`: called when a repository has changed.
    `state(name)`: called with the state of the connection. It is `live` while the socket receives events,
    `polling` while polls do, and `online` when neither does. After a failed attempt it is the state that the
    error implies. `refused`: called with the API after the server has refused its session. All three are
    called on the thread that listens. `hurries`: returns whether to ask a server that does not answer at
    least every HURRIED seconds."""

    def __init__(
        self,
        open_api: Callable[[], Api],
        heard: Callable[[str], None],
        state: Callable[[str], None],
        refused: Callable[[Api], object],
        hurries: Callable[[], bool] = lambda: False,
    ) -> None:
        self._hurries = hurries
        self._open_api, self._heard, self._state, self._refused = open_api, heard, state, refused
        self._lock = threading.Lock()
        self._ended, self._cancel = threading.Event(), Cancel()
        self._since: int | None = None  # the last event that polls brought; None: not polling
        self._repo_ids: dict[str, None] = {}  # the newest last
        self._socket: SyncSocket | None = None
        self._thread: threading.Thread | None = None

    @property
    def listens(self) -> bool:
        """Whether it listens to a repository, and so notices that the server is back."""
        thread = self._thread
        return thread is not None and thread.is_alive()

    def follow(self, repo_ids: Sequence[str]) -> None:
        """Listen to these repositories as well. Returns at once."""
        with self._lock:
            if self._ended.is_set() or not repo_ids:
                return
            listened = list(dict.fromkeys(repo_ids))[:MOST]
            fresh = [repo_id for repo_id in listened if repo_id not in self._repo_ids]
            for repo_id in listened:
                self._repo_ids.pop(repo_id, None)
                self._repo_ids[repo_id] = None
            gone = list(self._repo_ids)[:-MOST]
            for repo_id in gone:
                del self._repo_ids[repo_id]
            if self._socket is not None:
                for repo_id in gone:
                    self._socket.unsubscribe(repo_id)
                for repo_id in fresh:
                    self._socket.subscribe(repo_id)
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="events", daemon=True)
                self._thread.start()

    def close(self) -> None:
        with self._lock:
            self._ended.set()
            self._cancel.cancel()
            if self._socket is not None:
                self._socket.close()

    def _run(self) -> None:
        backoff = Backoff()
        refused = polled = 0
        while not self._ended.is_set():
            state = "online"
            try:
                with within(self._cancel, Deadline(OPENING)):
                    api = self._open_api()
                    if not api.signed_in:
                        return
                    socket = api.sync.socket()
                if not self._begin(socket):
                    return
                backoff.reset()
                refused = polled = 0
                self._since = None
                self._listen(socket)
            except Cancelled:
                return
            except SvcError as error:
                state = state_after(error)
                if state == "sign_in":
                    self._refused(self._open_api())
                backoff.lengthen()
                refused += 1
            finally:
                with self._lock:
                    self._socket = None
            if self._ended.is_set():
                return
            if self._since is None:
                self._state(state)
            if refused >= SOCKET_TRIES and state != "sign_in":
                state = self._polls(SOCKET_SOON if polled < SOON_TRIES else SOCKET_EVERY)
                if not state:
                    polled += 1
                    backoff.reset()
                    continue
                self._since = None
                self._state(state)
            backoff.wait(self._ended, HURRIED if self._hurries() else LONGEST)

    def _polls(self, seconds: float) -> str:
        """Poll for `seconds`, or until a poll fails. Returns the state of the connection after the failure,
        "" if none failed."""
        until, wait = time.monotonic() + seconds, 0
        while not self._ended.is_set() and (not wait or time.monotonic() < until):
            with self._lock:
                repo_ids = list(self._repo_ids)
            try:
                with within(self._cancel, Deadline(wait + OPENING)):
                    answer = self._open_api().sync.poll(repo_ids, self._since, wait=wait)
            except SvcError as error:
                return state_after(error)
            self._state("polling")
            changed = [event.repo_id for event in answer.events if event.kind != LIVE]
            if self._since is None or answer.resync:
                changed = repo_ids
            self._since, wait = answer.next, POLL_SECONDS
            for repo_id in dict.fromkeys(changed):
                self._heard(repo_id)
            with self._lock:
                for repo_id in answer.hidden:
                    self._repo_ids.pop(repo_id, None)
            self._ended.wait(POLL_PAUSE)
        return ""

    def _begin(self, socket: SyncSocket) -> bool:
        with self._lock:
            if self._ended.is_set():
                socket.close()
                return False
            self._socket = socket
            for repo_id in reversed(self._repo_ids):  # what is shown now comes first
                socket.subscribe(repo_id)
        return True

    def _listen(self, socket: SyncSocket) -> None:
        """Pass on events until the socket ends. The server's answer to a subscription counts as an event too,
        because events before it may have been missed."""
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
