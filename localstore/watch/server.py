"""The watcher process of one working copy, which answers questions on a Unix socket.

It holds the lock `watcher.lock` in the record's folder, but neither reads nor writes the record. It sleeps
while nothing happens. It ends when the folder is moved, deleted or unlinked, when a file system is mounted in
the folder, or when its socket is removed."""

from __future__ import annotations

import contextlib
import os
import select
import socket
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import msgspec

from localstore.errors import NotWatchable
from localstore.folder.lock import LOOKED_SECONDS, AlreadyLocked, hold_lock
from localstore.record.tracked_folders import TrackedFolders
from localstore.watch import mounts
from localstore.watch.inotify import DELETE, ITSELF, MOVED_FROM, Inotify
from localstore.watch.protocol import (
    ANSWER_BYTES,
    ENCODE,
    QUESTION_BYTES,
    SOCKET_NAME,
    Changes,
    ChangesQuestion,
    InfoQuestion,
    Question,
    WatcherInfo,
    WatcherToken,
    read_all,
    socket_path,
)
from localstore.watch.tree import EventsLost, Hears, WatchedTree, WatcherEnded

LOCK_NAME, LOG_NAME = "watcher.lock", "watcher.log"
COMMAND = "svc watcher"
PAUSE_SECONDS = 0.05  # seconds between two looks at the events while nobody asks: a build makes thousands
QUESTION_SECONDS = 0.5  # for one question to arrive: who is slower holds up the others
HEADER_BYTES = 5  # of msgpack before the bytes of a path, at most
PATHS_BYTES = ANSWER_BYTES // 2  # of the paths in an answer; more are answered by "anything may have changed"

Log = Callable[[str], None]
LIVE_PAUSE, MANY = 0.002, 64  # as PAUSE_SECONDS, for the agent, unless there were that many changes


class AgentLink(NamedTuple):
    """Connects a watcher with the agent that runs it. `hears`: receives the saves that the watcher sees.
    `ends`: a descriptor whose other end the agent closes to end the watcher."""

    hears: Hears
    ends: int


def watch(
    folder: Path, record: Path, ready: Callable[[WatcherInfo], None], say: Log, live: AgentLink | None = None
) -> str:
    """Watch the `folder` (a canonical path) until the watcher has to end. Returns the reason. `ready`: called
    when questions can be answered. `say`: the function that logs. `live`: the connection with the agent if
    the agent runs this watcher. Raises NotWatchable, also if another process watches the folder."""
    try:
        with (
            hold_lock(record / LOCK_NAME, COMMAND, LOOKED_SECONDS),
            contextlib.closing(_Watcher(folder, record, say, live)) as watcher,
        ):
            ready(watcher.info())
            watcher.run()
    except AlreadyLocked as other:
        raise NotWatchable(
            f"process {other.holder.pid} watches {folder} already; to end it: svc watcher stop"
        ) from None
    except WatcherEnded as end:
        return str(end)
    raise AssertionError("a watcher runs until it ends")


class _Watcher:
    def __init__(self, folder: Path, record: Path, say: Log, live: AgentLink | None) -> None:
        self._folder, self._record, self._say, self._live = folder, record, say, live
        self._since = int(time.time())
        self._open = contextlib.ExitStack()
        try:
            self._record_events = self._open.enter_context(contextlib.closing(Inotify()))
            self._mounts = self._open.enter_context(mounts.TABLE.open("rb", buffering=0))
            mounts.check(folder, self._mounts.read())
            self._tracked = self._open.enter_context(contextlib.closing(TrackedFolders(folder, record)))
            self._begin()
            self._open.callback(lambda: self._inotify.close())
            self._listening = self._open.enter_context(_listen(record))
            with _open_folder(record) as opened:
                self._record_events.add(opened, DELETE | MOVED_FROM | ITSELF)
        except BaseException:
            self._open.close()
            raise

    def close(self) -> None:
        with contextlib.suppress(OSError):
            (self._record / SOCKET_NAME).unlink()
        self._open.close()

    def info(self) -> WatcherInfo:
        live = self._live is not None
        return WatcherInfo(os.fsencode(self._folder), os.getpid(), self._since, len(self._tree), live)

    def run(self) -> None:
        """Run until WatcherEnded or NotWatchable is raised."""
        poll = select.poll()
        for fd, events in (
            (self._mounts.fileno(), select.POLLPRI),
            (self._record_events.fd, select.POLLIN),
            (self._listening.fileno(), select.POLLIN),
        ):
            poll.register(fd, events)
        if self._live is not None:
            poll.register(self._live.ends, select.POLLIN)
        rested = 0.0
        while True:
            resting = rested - time.monotonic()
            if resting > 0:
                happened = dict(poll.poll(resting * 1000))
            else:
                poll.register(self._inotify.fd, select.POLLIN)
                happened = dict(poll.poll())
                poll.unregister(self._inotify.fd)
            if self._live is not None and self._live.ends in happened:
                raise WatcherEnded("told to end")
            if self._mounts.fileno() in happened:
                self._mounts.seek(0)
                mounts.check(self._folder, self._mounts.read())
            if self._record_events.fd in happened:
                self._require_reachable()
            if self._inotify.fd in happened:
                before = self._tree.serial
                self._catch_up()
                few = self._live is not None and self._tree.serial - before < MANY
                rested = time.monotonic() + (LIVE_PAUSE if few else PAUSE_SECONDS)
            if self._listening.fileno() in happened:
                self._answer_question()

    # --- what happens in the folder

    def _begin(self) -> None:
        """Begin to watch all folders. Changes from before this call are unknown."""
        self._inotify = Inotify()
        self._id = os.urandom(16)
        try:
            if self._live is None:
                self._tree = WatchedTree(self._folder, self._inotify)
            else:  # a scan goes to tracked files in ignored folders each time; live sync hears of saves alone
                self._tree = WatchedTree(self._folder, self._inotify, self._live.hears, self._tracked.hold)
        except BaseException:
            self._inotify.close()
            raise

    def _catch_up(self) -> None:
        try:
            self._tree.process_events()
        except EventsLost:
            self._say("more happened than the system remembers; starting over")
            self._inotify.close()
            self._begin()
            if self._live is not None:
                self._live.hears.below("")

    def _require_reachable(self) -> None:
        for event in self._record_events.events():
            if event.mask & ITSELF or event.name == os.fsencode(SOCKET_NAME):
                raise WatcherEnded("its socket was removed")

    # --- questions

    def _answer_question(self) -> None:
        """Answer the question of one connection, if it arrives within QUESTION_SECONDS."""
        try:
            peer, _ = self._listening.accept()
        except OSError:
            return
        with peer, contextlib.suppress(OSError, msgspec.MsgspecError):
            data = read_all(peer, QUESTION_BYTES, time.monotonic() + QUESTION_SECONDS)
            if data is None:
                return
            question = msgspec.msgpack.decode(data, type=Question)
            self._tree.still_there()
            self._catch_up()
            if isinstance(question, ChangesQuestion):
                _send(peer, self._changes(question.token))
                return
            _send(peer, self.info())
            if not isinstance(question, InfoQuestion) and self._live is None:
                raise WatcherEnded("told to end (svc watcher stop)")

    def _changes(self, token: WatcherToken | None) -> Changes:
        now = WatcherToken(self._id, self._tree.serial)
        changed = self._tree.since(token.serial) if token and token.watcher == self._id else None
        if changed is not None:
            files, below = ([os.fsencode(path) for path in paths] for paths in changed)
            paths = files + below
            if sum(map(len, paths)) + HEADER_BYTES * len(paths) < PATHS_BYTES:
                return Changes(now, True, files, below)
        return Changes(now, False, [], [])


def _send(peer: socket.socket, answer: Changes | WatcherInfo) -> None:
    peer.settimeout(QUESTION_SECONDS)
    peer.sendall(ENCODE(answer))


def _listen(record: Path) -> socket.socket:
    """The listening socket of a record. A socket that a killed watcher left is replaced."""
    (record / SOCKET_NAME).unlink(missing_ok=True)
    listening = socket.socket(socket.AF_UNIX)
    with socket_path(record) as path:  # the record's folder is its owner's alone
        listening.bind(path)
    (record / SOCKET_NAME).chmod(0o600)
    listening.listen()
    listening.setblocking(False)
    return listening


@contextlib.contextmanager
def _open_folder(folder: Path) -> Iterator[int]:
    opened = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield opened
    finally:
        os.close(opened)
