"""What a command asks the watcher of a working copy, and what it answers: a Unix socket beside the record.

One question a connection: MessagePack up to the end of the stream, both ways. Paths travel as the system's
bytes. The socket is reached through the record's open folder, since the kernel takes 107 bytes of path.
"""

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
ASK_SECONDS = 1.0  # then a look goes its own way
CONTROL_SECONDS = 5.0  # for who starts, ends or lists watchers


class Token(msgspec.Struct, frozen=True, array_like=True):
    """A moment: `serial` counts what the watcher `watcher` has said by then."""

    watcher: bytes
    serial: int


class ChangesQuestion(msgspec.Struct, frozen=True, tag="since-1", forbid_unknown_fields=True):
    """What changed? None: tell only the moment."""

    token: Token | None


class InfoQuestion(msgspec.Struct, frozen=True, tag="about-1", forbid_unknown_fields=True):
    pass


class StopQuestion(msgspec.Struct, frozen=True, tag="stop-1", forbid_unknown_fields=True):
    pass


class Changes(msgspec.Struct, frozen=True, tag="changes-1"):
    """What changed since the token asked about, as folders by path with a slash behind: their `files`, or
    `all` below. `known` False: it may be anywhere. Every change before the question is in it, or was told
    before; those after it may not be."""

    token: Token
    known: bool
    files: list[bytes]
    all: list[bytes]


class WatcherInfo(msgspec.Struct, frozen=True, tag="watching-1"):
    """`since` in seconds of Unix time; `directories` that are watched."""

    folder: bytes
    pid: int
    since: int
    directories: int


Question = ChangesQuestion | InfoQuestion | StopQuestion
ENCODE = msgspec.msgpack.Encoder().encode


def ask_changes(record: Path, token: Token | None) -> Changes | None:
    """What changed in the folder of this record since the token; None without a watcher that answers."""
    answer = _ask(record, ChangesQuestion(token), ASK_SECONDS)
    return answer if isinstance(answer, Changes) else None


def ask_info(record: Path) -> WatcherInfo | None:
    """The watcher of this record; None without one that answers."""
    answer = _ask(record, InfoQuestion(), CONTROL_SECONDS)
    return answer if isinstance(answer, WatcherInfo) else None


def ask_stop(record: Path) -> WatcherInfo | None:
    """Have the watcher end; what it was, None if none answers."""
    answer = _ask(record, StopQuestion(), CONTROL_SECONDS)
    return answer if isinstance(answer, WatcherInfo) else None


@contextmanager
def socket_path(record: Path) -> Iterator[str]:
    """The socket under a short name, while the record's folder is open."""
    folder = os.open(record, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield f"/proc/self/fd/{folder}/{SOCKET_NAME}"
    finally:
        os.close(folder)


def read_all(peer: socket.socket, most: int, until: float) -> bytes | None:
    """What the peer sends up to its end; None for more than `most` bytes. TimeoutError after `until`, in
    seconds of the monotonic clock."""
    received = bytearray()
    while len(received) <= most:
        left = until - time.monotonic()
        if left <= 0:
            raise TimeoutError
        peer.settimeout(left)
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
