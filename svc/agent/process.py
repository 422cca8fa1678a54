"""The agent's process. Each SVC_HOME has its own, which is started when it is needed. It ends after an hour
without clients and watched folders."""

from __future__ import annotations

import itertools
import logging
import os
import signal
import threading
from contextlib import suppress
from functools import partial
from logging.handlers import RotatingFileHandler
from pathlib import Path
from typing import Any

from localstore.agent import place
from localstore.agent.server import Follower, HungUp, Server
from localstore.agent.talk import ApiResponse, Folder, FolderEvent, Reply, Request
from localstore.core.errors import SvcError, UsageError
from localstore.disk_errors import disk_error
from localstore.errors import NotWatched
from localstore.folder.lock import AlreadyLocked, hold_lock
from localstore.home import Home
from svc import __version__
from svc.agent.editor import editor_of, require_edit
from svc.agent.folder import WatchedFolder
from svc.agent.invoke import bus
from svc.agent.invoke.programs import Programs
from svc.agent.line import Line
from svc.agent.look import Look
from svc.agent.sender import Sender
from svc.api import Api, connect
from svc.http.origin import parse_origin
from svc.http.session import Sessions

IDLE_SECONDS = 3600.0  # without clients and watched folders until the agent ends
END_SECONDS = 10.0  # for folders to finish their rounds
COMMAND = "svc agent"


def serve(home: Home) -> int:
    """Run the agent of this SVC_HOME until it is no longer needed. Returns the exit code, which is 3 if
    another agent already runs for this SVC_HOME."""
    home.root.mkdir(parents=True, exist_ok=True, mode=0o700)
    try:
        with hold_lock(home.root / place.LOCK, COMMAND):
            _Agent(home).run()
    except AlreadyLocked:
        return 3
    return 0


class _Agent:
    """The agent. It answers the requests of clients (as a `localstore.agent.server.Desk`), and manages the
    watched folders and the connections to servers."""

    def __init__(self, home: Home) -> None:
        self._root, self.home = home.root, home
        self.programs = Programs(home.root)
        self._sessions = Sessions(home.root)
        self._log = _logger(home.root / place.LOG)
        self._sender = Sender(home, self._sessions, self._log)
        self._lock = threading.RLock()
        self._changed = threading.Condition(self._lock)
        self._folders: dict[str, WatchedFolder] = {}
        self._lines: dict[str, Line] = {}
        self._followers: dict[Follower, str | None] = {}
        self._attached: dict[Follower, WatchedFolder] = {}  # what a follower or editor keeps watched
        self._looks: dict[Follower, tuple[str, Look]] = {}
        self._replicas: dict[str, dict[tuple[str, str], int]] = {}  # server → ids of looks
        self._channels = itertools.count(1)
        self._conversations = 0
        self._ending = False
        self._leaving = False  # told to stop everything: ends when the last client disconnects

    def run(self) -> None:
        for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
            signal.signal(number, self._end_by_signal)
        signal.signal(signal.SIGIO, signal.SIG_IGN)  # broken leases are noticed when they end
        os.chdir("/")  # a current folder would keep its file system mounted
        self._log(f"agent of {self._root}, svc {__version__}, process {os.getpid()}")
        server = Server(self._root, self)
        for folder in place.folders(self._root, place.FOLDERS):
            with suppress(SvcError, OSError):
                self._watch(folder, detach=True)
        server.start()
        try:
            with self._changed:
                while not self._ending:
                    idle = not (self._folders or self._conversations)
                    if idle and self._leaving:
                        self._log("told to stop everything")
                        return
                    self._leaving = self._leaving and not self._folders
                    if not self._changed.wait(IDLE_SECONDS if idle else None) and idle:
                        self._log("nobody needed it for an hour")
                        return
        finally:
            server.close()
            self._end()

    def _end_by_signal(self, number: int, _frame: Any) -> None:
        self._log(f"told to end ({signal.Signals(number).name})")
        with self._changed:
            self._ending = True
            self._changed.notify_all()

    def _end(self) -> None:
        with self._lock:
            folders, lines = list(self._folders.values()), list(self._lines.values())
        self._sender.close()
        self.programs.close()
        for folder in folders:
            folder.stop()
        for folder in folders:
            folder.join(END_SECONDS)
        for line in lines:
            line.close()

    # --- requests

    def answer(self, request: Request) -> Reply:
        """Carry out a request, and return its reply. For the requests `follow` and `look`, later events are
        sent through the client's follower."""
        try:
            match request.do:
                case "watch":
                    return self._reply([self._watch(request.folder or "", request.detach, request.turn)])
                case "stop":
                    return self._reply(self._stop(request.folder))
                case "edit":
                    require_edit(request)
                    return self._reply([self._watch(request.folder or "", request.detach)])
                case "look":
                    self._require_server(request)
                    return self._reply([])
                case "here":
                    for look in self._looks_at(request):
                        look.send_position(request.path, request.line)
                    return self._reply([])
                case "send":
                    self._sender.wake()
                    return self._reply([])
                case "switched":
                    watched = self._watched_folder(request.folder or "")
                    watched.follow_switch()
                    return self._reply([watched])
                case "follow" if request.folder is not None:
                    return self._reply([self._watched_folder(request.folder)])
                case _:
                    return self._reply(list(self._folders.values()))
        except SvcError as error:
            return Reply(os.getpid(), __version__, error.code, error.detail or error.title)
        except OSError as error:
            failed = disk_error(error, self._root)
            return Reply(os.getpid(), __version__, failed.code, failed.detail)

    def invoke(self, request: Request, hung_up: HungUp) -> ApiResponse[Any]:
        """Run the command that the request names, and return its response."""
        return bus.invoke(self, request, hung_up)

    def states(self) -> list[Folder]:
        """Return the current states of the watched folders, sorted by folder."""
        with self._lock:
            watched = list(self._folders.values())
        return sorted((folder.state() for folder in watched), key=lambda state: state.folder)

    def pause(self, folder: str | None, paused: bool) -> list[Folder]:
        """Stop exchanging edits of a folder, or resume if `paused` is False. If `folder` is None, this
        applies to all folders. Returns the states of these folders."""
        with self._lock:
            watched = [self._watched_folder(folder)] if folder is not None else list(self._folders.values())
            for watched_folder in watched:
                watched_folder.pause(paused)
            self._store_paused()
        return self.states() if folder is None else [watched_folder.state() for watched_folder in watched]

    def reader(self, origin: str | None) -> Api:
        """Return the API of the server `origin`. If it is None, the server of the last sign-in is used.
        Raises UsageError if this machine never signed in."""
        server = origin or self._sessions.default_server()
        if server is None:
            raise UsageError("no server is known yet; sign in to one: svc login --server https://NODE")
        return connect(parse_origin(server), self._sessions)

    def follows(self, request: Request, follower: Follower) -> None:
        """Handle a new client that wants events: start its look, open its text for editing, or count it as a
        follower of its folder."""
        if request.do == "look":
            self._look(request, follower)
            return
        with self._lock:
            watched = self._folders.get(os.path.realpath(request.folder)) if request.folder else None
            if watched is not None:
                watched.followers += 1
                self._attached[follower] = watched
            if request.do != "edit":
                self._followers[follower] = request.folder
            elif watched is not None:
                watched.edit(editor_of(request, follower))
        if watched is None and request.folder is not None:
            follower.hang_up_later()  # its thread ended since the request was answered; the client asks again

    def unfollow(self, request: Request, follower: Follower) -> None:
        """Clean up after a client that received events and has disconnected: end its look, or its editing of
        a text. A folder that no client follows any more is no longer watched, unless it is detached."""
        with self._lock:
            look = self._looks.pop(follower, None)
        if look is not None:
            look[1].close()
            self._close_lines()
            return
        with self._lock:
            self._followers.pop(follower, None)
            watched = self._attached.pop(follower, None)
            if watched is None:
                return
            watched.followers -= 1
            watched.end_edit(follower)
            if request.turn is not None:
                watched.end_turn(request.turn)
            lonely = not watched.followers and not watched.detached
        if lonely:
            watched.stop()

    def conversing(self, count: int) -> None:
        """Note the number of clients that are connected to the agent's socket; called whenever it changes. An
        idle agent ends only when no client is connected."""
        with self._changed:
            self._conversations = count
            self._changed.notify_all()

    # --- looks

    def _require_server(self, request: Request) -> None:
        """Raise UsageError unless the request names a repository, a branch, and a server that this machine is
        signed in to."""
        origin = parse_origin(request.server or "")
        if not (request.repo and request.branch) or self._sessions.find(origin) is None:
            raise UsageError("a look names a repository, a branch, and a server that you are signed in to")

    def _look(self, request: Request, follower: Follower) -> None:
        origin = parse_origin(request.server or "")
        with self._lock:
            look = Look(
                request.repo,
                request.branch,
                next(self._channels),
                self._line_of(origin),
                partial(self.reader, origin),
                self._sessions.identity.device.id,
                self._replicas.setdefault(origin, {}),
                follower.say,
                follower.hang_up_later,
                self._log,
            )
            self._looks[follower] = (origin, look)

    def _looks_at(self, request: Request) -> list[Look]:
        named = (request.server, request.repo, request.branch)
        with self._lock:
            return [
                look for origin, look in self._looks.values() if (origin, look.repo_id, look.branch) == named
            ]

    def _close_lines(self) -> None:
        """Close the connections to servers that are no longer used by a watched folder or a `Look`."""
        with self._lock:
            used = {look.line for _, look in self._looks.values()}
            for origin, line in list(self._lines.items()):
                if line.empty and line not in used:
                    line.close()
                    del self._lines[origin]

    # --- folders

    def _watched_folder(self, folder: str) -> WatchedFolder:
        with self._lock:
            if folder not in self._folders:
                raise NotWatched(folder)
            return self._folders[folder]

    def _watch(self, folder: str, detach: bool, turn: str | None = None) -> WatchedFolder:
        root = Path(folder).resolve(strict=True)
        with self._changed:
            watched = self._folders.get(str(root))
            if watched is None:
                channel = next(self._channels)
                paused = str(root) in place.folders(self._root, place.PAUSED)
                watched = WatchedFolder(
                    root, channel, self._line_of, self._say, self._forget_folder, self._log, paused
                )
                self._folders[str(root)] = watched
                self._log(f"watching {root}")
            if detach and not watched.detached:
                watched.detached = True
                self._store_detached()
            if turn is not None:
                watched.turn(turn)
            self._changed.notify_all()
            return watched

    def _stop(self, folder: str | None) -> list[WatchedFolder]:
        with self._lock:
            watched = [self._watched_folder(folder)] if folder is not None else list(self._folders.values())
            for watched_folder in watched:
                watched_folder.detached = watched_folder.paused = False
            self._store_detached()
            self._store_paused()
        for watched_folder in watched:
            watched_folder.stop()
        for watched_folder in watched:
            watched_folder.join(END_SECONDS)
        if folder is None:
            with self._changed:
                self._leaving = True
        return watched

    def _store_detached(self) -> None:
        detached = sorted(key for key, folder in self._folders.items() if folder.detached)
        place.put_folders(self._root, place.FOLDERS, detached)

    def _store_paused(self) -> None:
        paused = sorted(key for key, folder in self._folders.items() if folder.paused)
        place.put_folders(self._root, place.PAUSED, paused)

    def _forget_folder(self, watched: WatchedFolder, why: str) -> None:
        """Remove a watched folder whose thread has ended. Clients that edit texts of this folder are
        disconnected; they then connect again."""
        with self._changed:
            if self._folders.get(str(watched.root)) is watched:
                del self._folders[str(watched.root)]
            if watched.detached and not self._ending:
                self._store_detached()
            self._close_lines()
            editing = [
                follower
                for follower, folder in self._attached.items()
                if folder is watched and follower not in self._followers
            ]
            self._changed.notify_all()
        watched.say_ended(why)
        for follower in editing:
            follower.hang_up_later()  # what it types now would be lost in the inbox of a thread that is gone
        self._log(f"no longer watching {watched.root}: {why}")

    def _line_of(self, origin: str) -> Line:
        with self._lock:
            line = self._lines.get(origin)
            if line is None:
                line = self._lines[origin] = Line(origin, self._sessions, self._log, self._sender.wake)
            return line

    def _say(self, event: FolderEvent) -> None:
        with self._lock:
            hearing = [
                follower for follower, folder in self._followers.items() if folder in (None, event.folder)
            ]
        for follower in hearing:
            follower.say(event)
        if event.event == "ended":
            for follower, folder in list(self._followers.items()):
                if folder == event.folder:
                    follower.hang_up_later()  # once it has heard that

    def _reply(self, watched: list[WatchedFolder]) -> Reply:
        folders: list[Folder] = [folder.state() for folder in watched]
        return Reply(os.getpid(), __version__, folders=sorted(folders, key=lambda state: state.folder))


def _logger(path: Path) -> Any:
    """Return a function that writes a line to the log file `path`."""
    logger = logging.Logger("agent")
    handler = RotatingFileHandler(path, maxBytes=place.LOG_BYTES, backupCount=1, encoding="utf-8")
    handler.setFormatter(logging.Formatter("%(asctime)s %(message)s"))
    logger.addHandler(handler)
    return logger.info
