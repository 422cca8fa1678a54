"""The listening side of the agent's socket. It answers only processes of the same user. Every line is limited
in length. A client is disconnected if it sends nothing, sends an incomplete line, or does not read its
answers."""

from __future__ import annotations

import os
import queue
import selectors
import socket
import struct
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, Protocol

import msgspec

from localstore.agent.place import SOCKET, socket_path
from localstore.agent.talk import (
    LINE_BYTES,
    RESPONSE_BYTES,
    ApiResponse,
    BranchEvent,
    FolderEvent,
    Reply,
    Request,
    SheetEvent,
    encode,
)

CONVERSATIONS = 64  # at once; further ones are hung up on
REQUEST_SECONDS = 30.0  # for a whole request to come
SEND_SECONDS = 10.0  # for what is said to be taken
STAYING = ("follow", "look", "edit")  # requests after which a client hears until it hangs up
UNREAD = 10_000  # events that wait for one follower
_requests = msgspec.json.Decoder(Request)


class Follower:
    """A client that stays connected and receives events. It is disconnected once UNREAD events wait to be
    sent to it. `hears`: called with each line that the client sends, on a thread of its own."""

    def __init__(self, peer: socket.socket, lines: Lines) -> None:
        self._peer, self._lines = peer, lines
        self.hears: Callable[[bytes], None] | None = None
        self._waiting: queue.Queue[FolderEvent | BranchEvent | SheetEvent | None] = queue.Queue(UNREAD)

    def say(self, event: FolderEvent | BranchEvent | SheetEvent) -> None:
        try:
            self._waiting.put_nowait(event)
        except queue.Full:
            self.hang_up()

    def hang_up(self) -> None:
        with suppress(queue.Full):
            self._waiting.put_nowait(None)
        with suppress(OSError):
            self._peer.shutdown(socket.SHUT_RDWR)

    def hang_up_later(self) -> None:
        """Disconnect the client once the waiting events are sent. If the queue is full, disconnect it at
        once."""
        try:
            self._waiting.put_nowait(None)
        except queue.Full:
            self.hang_up()

    def serve(self) -> None:
        """Send events until one side disconnects."""
        threading.Thread(target=self._wait_for_hang_up, daemon=True).start()
        while (event := self._waiting.get()) is not None:
            self._peer.sendall(encode(event) + b"\n")
        with suppress(OSError):
            self._peer.shutdown(socket.SHUT_RDWR)  # a close would wait for the thread that reads

    def _wait_for_hang_up(self) -> None:
        with suppress(OSError):
            while (line := self._lines.next(None)) is not None:
                if self.hears is not None:
                    self.hears(line)
        with suppress(queue.Full):
            self._waiting.put_nowait(None)


HungUp = Callable[[], bool]


class Desk(Protocol):
    """Answers the requests on the agent's socket; the agent implements it. Each connection of a client calls
    it from its own thread."""

    def answer(self, request: Request) -> Reply:
        """Carry out a request and return its answer. Events that follow a `follow` or `look` are sent
        later."""

    def invoke(self, request: Request, hung_up: HungUp) -> ApiResponse[Any]:
        """Run a command and return its answer. The command is cancelled once `hung_up` says that its client
        has disconnected."""

    def follows(self, request: Request, follower: Follower) -> None:
        """Called when a follower has connected. The follower receives all events from then on."""

    def unfollow(self, request: Request, follower: Follower) -> None:
        """Called when a follower has disconnected."""

    def conversing(self, count: int) -> None:
        """Called with the number of connections that clients keep open, whenever it changes."""


class Server:
    """Listens on the agent's socket in SVC_HOME. The caller holds the agent's lock; so a socket that exists
    already was left by a process that died, and is replaced."""

    def __init__(self, root: Path, desk: Desk) -> None:
        self._root, self._desk = root, desk
        self._lock, self._count = threading.Lock(), 0
        (root / SOCKET).unlink(missing_ok=True)
        self._listening = socket.socket(socket.AF_UNIX)
        with socket_path(root) as path:
            self._listening.bind(path)
        (root / SOCKET).chmod(0o600)
        self._listening.listen(CONVERSATIONS)

    def start(self) -> None:
        threading.Thread(target=self._accept, daemon=True, name="socket").start()

    def close(self) -> None:
        with suppress(OSError):
            (self._root / SOCKET).unlink()
        with suppress(OSError):
            self._listening.shutdown(socket.SHUT_RDWR)
        self._listening.close()

    def _accept(self) -> None:
        while True:
            try:
                peer, _ = self._listening.accept()
            except OSError:
                return
            if not is_ours(peer) or self._count >= CONVERSATIONS:
                peer.close()
                continue
            self._count_up(1)  # here, so that a burst cannot pass the limit
            threading.Thread(target=self._converse, args=(peer,), daemon=True).start()

    def _converse(self, peer: socket.socket) -> None:
        try:
            with peer, suppress(OSError, msgspec.MsgspecError):
                self._requests(peer)
        finally:
            self._count_up(-1)

    def _count_up(self, more: int) -> None:
        with self._lock:
            self._count += more
            count = self._count
        self._desk.conversing(count)

    def _requests(self, peer: socket.socket) -> None:
        lines = Lines(peer)
        while (line := lines.next()) is not None:
            try:
                request = _requests.decode(line)
            except (msgspec.MsgspecError, RecursionError) as error:
                _send(peer, Reply(code="invalid", error=f"this is not a request: {str(error)[:200]}"))
                continue
            if request.do == "invoke":
                _respond(peer, self._desk.invoke(request, lambda: _has_hung_up(peer)))
                continue
            reply = self._desk.answer(request)
            if request.do not in STAYING or reply.error:
                _send(peer, reply)
                continue
            follower = Follower(peer, lines)
            self._desk.follows(request, follower)
            try:
                _send(peer, reply)
                follower.serve()
            finally:
                self._desk.unfollow(request, follower)
            return


class Lines:
    """The lines that a peer sends, each at most LINE_BYTES long."""

    def __init__(self, peer: socket.socket) -> None:
        self._peer = peer
        self._received = bytearray()

    def next(self, seconds: float | None = REQUEST_SECONDS) -> bytes | None:
        """The next line; None if the peer disconnects, is too slow, or sends a line that is too long."""
        self._peer.settimeout(seconds)
        searched = 0
        while (end := self._received.find(b"\n", searched)) < 0:
            searched = len(self._received)
            if searched > LINE_BYTES:
                _send(self._peer, Reply(code="too_large", error=f"a line has at most {LINE_BYTES} bytes"))
                return None
            piece = self._peer.recv(1 << 16)
            if not piece:
                return None
            self._received += piece
        line = bytes(self._received[:end])
        del self._received[: end + 1]
        return line


def is_ours(peer: socket.socket) -> bool:
    """Whether the peer runs as the same user as this process. Returns True on systems that cannot tell; there
    only the permissions of the socket's file protect it."""
    if not sys.platform.startswith("linux"):
        return True
    size = struct.calcsize("3i")
    _, uid, _ = struct.unpack("3i", peer.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, size))
    return bool(uid == os.getuid())


def _has_hung_up(peer: socket.socket) -> bool:
    """Whether the client has disconnected. Returns False if its next request is waiting to be read."""
    try:
        # select.select takes no descriptor above 1023.
        with selectors.DefaultSelector() as waiting:
            waiting.register(peer, selectors.EVENT_READ)
            return bool(waiting.select(0)) and peer.recv(1, socket.MSG_PEEK) == b""
    except (OSError, ValueError):
        return True


def _respond(peer: socket.socket, response: ApiResponse[Any]) -> None:
    line = encode(response)
    if len(line) > RESPONSE_BYTES:
        line = encode(
            ApiResponse.refuse("too_large", f"the answer has {len(line)} bytes, {RESPONSE_BYTES} at most")
        )
    peer.settimeout(SEND_SECONDS)
    peer.sendall(line + b"\n")


def _send(peer: socket.socket, reply: Reply) -> None:
    peer.settimeout(SEND_SECONDS)
    peer.sendall(encode(reply) + b"\n")


Say = Callable[[FolderEvent], None]
