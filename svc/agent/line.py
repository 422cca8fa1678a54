"""The connection to one server, shared by all folders that the agent watches there. Its light says how the
server is reached:

live: the socket is open

polling: sockets fail, but requests succeed; the agent tries the socket again every ten seconds, later every
minute

offline: sockets and requests fail; the agent tries again after 1, 2, 4 … 30 seconds"""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Protocol

import msgspec

from localstore.agent.talk import Light
from localstore.core.errors import ServerUnreachable, SvcError, TooLarge, Unauthorized
from localstore.core.model.live import UpdateBatch
from localstore.core.model.sync import (
    Answers,
    Doing,
    Event,
    Gap,
    Hidden,
    Live,
    Opened,
    People,
    PollChannel,
    Refused,
    Resync,
)
from svc.api import Api, connect
from svc.api.sync import SyncSocket
from svc.flows.sign_in.login import by_device_key
from svc.http.bounds import Cancel, Deadline, within
from svc.http.session import Sessions

FIRST_FRAME = 10.0  # seconds until the first message of a socket
SOCKET_TRIES = 2  # failures in a row before requests are tried
POLL_TRIES = 2
POLL_SECONDS = 10  # that a poll waits for messages, and as many more for its answer to arrive
SOCKET_SOON, SOCKET_EVERY = 10.0, 60.0  # seconds between two tries of a socket while polling
SOON_TRIES = 12  # after which they are rarer
QUICK = 0.5  # an empty answer in fewer seconds means that the server does not wait
RETRIES = (1, 2, 4, 8, 16, 30)  # seconds
SPREAD = 0.2

Heard = Opened | Refused | Live | Gap | Answers | People | Event | Hidden | Resync


class ChannelParameters(msgspec.Struct):
    """The parameters for opening a channel, which carries the updates of one branch. `replica` is the id
    under which the folder numbers its updates. `since` is the sequence number of the last update that the
    folder has received from the branch."""

    repo_id: str
    branch: str
    replica: int
    device_key_id: str
    since: int


class Member(Protocol):
    """A watched folder or a look (a branch without a folder), which shares the connection to a server. The
    thread of the connection calls these methods, so they must return at once."""

    channel: int
    repo_id: str

    @property
    def channel_parameters(self) -> ChannelParameters | None:
        """The parameters for opening the channel of this folder or look. None if the user may only read,
        because then there is no channel."""

    def queue_message(self, message: Heard) -> None: ...

    def queue_light(self, light: Light, why: str) -> None: ...


class Line:
    """The connection of the agent to one server. Watched folders and looks begin to use it with `join`, and
    end that with `leave`. `close` ends the connection. `answers` is called when the server can be reached
    again."""

    def __init__(
        self, origin: str, sessions: Sessions, log: Callable[[str], None], answers: Callable[[], None]
    ) -> None:
        self.origin, self._sessions, self._log, self._answers = origin, sessions, log, answers
        self.light: Light = "offline"
        self._unreachable = False  # whether it is off because the server was not reached
        self.why, self.since = "connecting", int(time.time())
        self._lock = threading.Lock()
        self._members: dict[int, Member] = {}
        self._socket: SyncSocket | None = None
        self._next_id = 0
        self._wake, self._end = threading.Event(), Cancel()
        self._closing = threading.Event()
        self._seen: dict[int, int] = {}  # channel → last number that polls delivered
        self._event: int | None = None  # last event that polls delivered
        self._opened: set[int] = set()
        self._thread = threading.Thread(target=self._run, daemon=True, name=f"line {origin}")
        self._thread.start()

    def join(self, member: Member) -> None:
        """Let a watched folder or look use the connection. Its channel is opened if the socket is open. Call
        this again when its `channel_parameters` have changed."""
        with self._lock:
            self._members[member.channel] = member
            self._seen.pop(member.channel, None)
            socket = self._socket
        member.queue_light(self.light, self.why)
        if socket is not None:
            self._open(socket, member)

    def leave(self, member: Member) -> None:
        with self._lock:
            self._members.pop(member.channel, None)
            socket, repos = self._socket, {member.repo_id for member in self._members.values()}
        if socket is not None:
            socket.close_channel(member.channel)
            if member.repo_id not in repos:
                socket.unsubscribe(member.repo_id)

    @property
    def empty(self) -> bool:
        return not self._members

    def close(self) -> None:
        self._closing.set()
        self._end.cancel()
        self._wake.set()
        socket = self._socket
        if socket is not None:
            socket.close()

    def retry(self) -> None:
        """Try to connect now, instead of at the next scheduled time."""
        self._wake.set()

    def send(self, channel: int, batch: UpdateBatch) -> int | None:
        """Send updates over the socket, on the channel with this number. Returns the number by which the
        server's answer will refer to the updates. Returns None if the channel is not open; then the caller
        must send the updates by a request."""
        with self._lock:
            socket = self._socket if channel in self._opened else None
            self._next_id += 1
            number = self._next_id
        if socket is None:
            return None
        try:
            socket.send_updates(channel, number, batch)
        except TooLarge:
            return None
        return number

    def send_position(
        self, channel: int, path: str, line: int, turn: str | None, state: Doing = "edit", col: int = 0
    ) -> bool:
        """Tell the others on the branch in which file, line and column the user is. `turn` names the piece of
        work of an AI agent that edits for the user, or is None. Returns False if the channel is not open, so
        that nothing was sent."""
        with self._lock:
            socket = self._socket if channel in self._opened else None
        if socket is not None:
            socket.send_here(channel, path, line, col, state, turn)
        return socket is not None

    # --- the thread

    def _run(self) -> None:
        failures = sockets = polled = 0
        dead = False  # whether requests may fail too; if they work again, try a socket at once
        while not self._closing.is_set():
            try:
                api = connect(self.origin, self._sessions)
                was_live = self._talk(api)
            except Unauthorized as error:
                was_live = False
                if self._renew_session():
                    continue
                self._light("offline", error.detail or "sign in: svc login")
            except SvcError as error:
                was_live = False
                self._lose(error)
            except Exception as error:  # a bug must not end the line
                was_live = False
                self._log(f"line {self.origin}: {type(error).__name__}: {error}")
                self._light("offline", f"something broke inside svc ({type(error).__name__})")
            if self._closing.is_set():
                return
            if was_live:
                failures = sockets = polled = 0
                dead = True
                continue  # retry at once
            sockets += 1
            if sockets >= SOCKET_TRIES:
                dead = not self._polls(SOCKET_SOON if polled < SOON_TRIES else SOCKET_EVERY, once=dead)
                polled += 1
                if not dead:
                    failures, sockets = 0, SOCKET_TRIES - 1
                    continue
            if sockets >= SOCKET_TRIES or failures:
                wait = RETRIES[min(failures, len(RETRIES) - 1)]
                failures += 1
                self._wake.wait(wait * random.uniform(1 - SPREAD, 1 + SPREAD))  # noqa: S311 - spreads clients
                self._wake.clear()

    def _talk(self, api: Api) -> bool:
        """Open a socket and pass on its messages until the connection breaks. Returns whether any message
        came."""
        with within(self._end, Deadline(FIRST_FRAME)):
            socket = api.sync.socket()
        live = False
        try:
            with within(self._end):
                with self._lock:
                    self._socket, members = socket, list(self._members.values())
                    self._opened.clear()
                for member in members:
                    self._open(socket, member)
                until = time.monotonic() + FIRST_FRAME
                while True:
                    wait = None if live or not self._members else max(0.0, until - time.monotonic())
                    message = socket.receive(wait)
                    if message is None:
                        raise ServerUnreachable(f"the socket to {self.origin} says nothing")
                    if not live:
                        live = True
                        self._light("live", "")
                    self._pass_on(message)
        except ServerUnreachable as error:
            self._lose(error)
        finally:
            with self._lock:
                self._socket = None
                self._opened.clear()
            socket.close()
        return live

    def _open(self, socket: SyncSocket, member: Member) -> None:
        socket.subscribe(member.repo_id)
        parameters = member.channel_parameters
        if parameters is not None:
            socket.open(
                member.channel,
                parameters.repo_id,
                parameters.branch,
                parameters.replica,
                parameters.device_key_id,
                parameters.since,
            )

    def _pass_on(self, message: object) -> None:
        if isinstance(message, Opened | Refused | Live | Gap | Answers | People):
            with self._lock:
                member = self._members.get(message.channel)
                if isinstance(message, Opened):
                    self._opened.add(message.channel)
                elif isinstance(message, Refused) and message.id is None:
                    self._opened.discard(message.channel)
            if member is not None:
                member.queue_message(message)
        elif isinstance(message, Event | Hidden | Resync):
            for peer in list(self._members.values()):
                if peer.repo_id == message.repo_id:
                    peer.queue_message(message)

    # --- polls

    def _polls(self, seconds: float, once: bool) -> bool:
        """Poll the server for `seconds`, or until several polls have failed. With `once`, stop after one
        successful poll. Returns whether the server answered polls."""
        failed, until, answered = 0, time.monotonic() + seconds, False
        while not self._closing.is_set() and time.monotonic() < until:
            began = time.monotonic()
            wait = 0 if not answered else max(1, min(POLL_SECONDS, int(until - began)))
            try:
                idle = self._poll(connect(self.origin, self._sessions), wait)
            except Unauthorized:
                return False
            except SvcError as error:
                failed += 1
                if failed >= POLL_TRIES:
                    self._lose(error)
                    return False
                self._wake.wait(1)
                self._wake.clear()
                continue
            failed, answered = 0, True
            if once:
                return True
            self._light("polling", "the server opens no socket")
            if idle and wait and time.monotonic() - began < QUICK:
                self._wake.wait(QUICK)  # the server answers without waiting
        return answered

    def _poll(self, api: Api, wait: int) -> bool:
        """Poll once, and pass on the answer. The server may wait up to `wait` seconds for messages. Returns
        True if no message came."""
        with self._lock:
            members = list(self._members.values())
        channels = []
        for member in members:
            parameters = member.channel_parameters
            if parameters is not None:
                since = max(parameters.since, self._seen.get(member.channel, 0))
                channels.append(
                    PollChannel(
                        channel=member.channel,
                        repo_id=parameters.repo_id,
                        branch=parameters.branch,
                        replica=parameters.replica,
                        device_key_id=parameters.device_key_id,
                        since=since,
                    )
                )
        repos = sorted({member.repo_id for member in members})
        with within(self._end, Deadline(wait + FIRST_FRAME)):
            answer = api.sync.poll(repos, self._event, channels, wait)
        self._event = answer.next
        for frame in answer.frames:
            if isinstance(frame, Live | Gap):
                self._seen[frame.channel] = frame.seq
            self._pass_on(frame)
        for event in answer.events:
            self._pass_on(event)
        for repo_id in answer.hidden:
            self._pass_on(Hidden(repo_id=repo_id))
        if answer.resync:
            for repo_id in repos:
                self._pass_on(Resync(repo_id=repo_id, id=answer.next))
        return not (answer.frames or answer.events)

    def _lose(self, error: SvcError) -> None:
        """Set the light to offline, and show the error as the reason. If the server stays unreachable, the
        first reason is kept."""
        unreachable = isinstance(error, ServerUnreachable)
        if not (unreachable and self._unreachable and self.light == "offline"):
            self._light("offline", error.detail)
        self._unreachable = unreachable

    def _light(self, light: Light, why: str) -> None:
        if (light, why) == (self.light, self.why):
            return
        if light != self.light:
            self.since = int(time.time())
            if light != "offline":
                self._answers()
        self.light, self.why = light, why
        for member in list(self._members.values()):
            member.queue_light(light, why)

    def _renew_session(self) -> bool:
        """Sign in again with the device key, if the session has run out. Returns whether that worked. A
        session that somebody ended early is not renewed."""
        try:
            session = self._sessions.find(self.origin)
            if session is None or not session.handle or not session.registered:
                return False
            if session.seconds_left(datetime.now(UTC)) > 0:
                return False
            by_device_key(self.origin, self._sessions, session.handle, name=session.device_name)
        except SvcError as error:
            self._log(f"line {self.origin}: {error.detail}")
            return False
        return True
