"""The questions of a command to the watcher, and the watcher's answers, over a Unix socket in the record's
folder.

A connection carries one question and one answer, each as MessagePack up to the end of the stream. Paths are
raw bytes. The socket is addressed through the record's open folder, because the kernel allows only 107 bytes
of path."""

from __future__ import annotations

import contextlib
import os
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec

SOCKET_NAME = "watcher.sock"
QUESTION_BYTES = 4096
ANSWER_BYTES = 1 << 20
ASK_SECONDS = 1.0  # for a scan to get an answer; it then scans everything
CONTROL_SECONDS = 5.0  # for commands that start, end or list watchers


class WatcherToken(msgspec.Struct, frozen=True, array_like=True):
    """A point in time up to which a watcher has reported all changes. `watcher`: id of the watcher. `serial`:
    how many changes it had counted by then."""

    watcher: bytes
    serial: int


class ChangesQuestion(msgspec.Struct, frozen=True, tag="since-1", forbid_unknown_fields=True):
    """Asks which folders changed since a moment (`token`). Without a token, only the current token is
    returned."""

    token: WatcherToken | None


class InfoQuestion(msgspec.Struct, frozen=True, tag="about-1", forbid_unknown_fields=True):
    """Asks which folder the watcher watches."""

    pass


class StopQuestion(msgspec.Struct, frozen=True, tag="stop-1", forbid_unknown_fields=True):
    """Asks the watcher to end."""

    pass


class Changes(msgspec.Struct, frozen=True, tag="changes-1"):
    """The answer: what changed since the token of the question, as folder paths with a trailing slash.
    `token`: the current token. `files`: folders whose files changed. `all`: folders below which anything
    may have changed. `known`: False if anything anywhere may have changed. Every change before the
    question is in this answer or in an earlier one."""

    token: WatcherToken
    known: bool
    files: list[bytes]
    all: list[bytes]


class WatcherInfo(msgspec.Struct, frozen=True, tag="watching-1"):
    """What a running watcher says about itself. `since`: when it started, in Unix seconds. `directories`:
    number of watched directories. `live`: the agent runs this watcher for `svc watch`, and ends it too."""

    folder: bytes
    pid: int
    since: int
    directories: int
    live: bool = False


Question = ChangesQuestion | InfoQuestion | StopQuestion
ENCODE = msgspec.msgpack.Encoder().encode


def ask_changes(record: Path, token: WatcherToken | None) -> Changes | None:
    """The changes in the folder of this record since the token. None if no watcher answers."""
    answer = _ask(record, ChangesQuestion(token), ASK_SECONDS)
    return answer if isinstance(answer, Changes) else None


def ask_info(record: Path) -> WatcherInfo | None:
    """What the watcher of this record says about itself. None if no watcher answers."""
    answer = _ask(record, InfoQuestion(), CONTROL_SECONDS)
    return answer if isinstance(answer, WatcherInfo) else None


def ask_stop(record: Path) -> WatcherInfo | None:
    """End the watcher. Returns its description, None if no watcher answers."""
    answer = _ask(record, StopQuestion(), CONTROL_SECONDS)
    return answer if isinstance(answer, WatcherInfo) else None


@contextmanager
def socket_path(record: Path) -> Iterator[str]:
    """A context with a short path of the socket in the record's folder. The path is valid only inside the
    context."""
    folder = os.open(record, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield f"/proc/self/fd/{folder}/{SOCKET_NAME}"
    finally:
        os.close(folder)


def read_all(peer: socket.socket, most: int, until: float) -> bytes | None:
    """All bytes that the peer sends, None if there are more than `most`. `until`: a time of the monotonic
    clock in seconds, after which TimeoutError is raised."""
    received = bytearray()
    while len(received) <= most:
        seconds = until - time.monotonic()
        if seconds <= 0:
            raise TimeoutError
        peer.settimeout(seconds)
        piece = peer.recv(1 << 16)
        if not piece:
            return bytes(received)
        received += piece
    return None


def _ask(record: Path, question: Question, seconds: float) -> Changes | WatcherInfo | None:
    until = time.monotonic() + seconds
    with contextlib.suppress(OSError, msgspec.MsgspecError), socket_path(record) as path:
        with socket.socket(socket.AF_UNIX) as peer:
            peer.settimeout(seconds)
            peer.connect(path)
            peer.sendall(ENCODE(question))
            peer.shutdown(socket.SHUT_WR)
            answer = read_all(peer, ANSWER_BYTES, until)
        return None if answer is None else msgspec.msgpack.decode(answer, type=Changes | WatcherInfo)
    return None
