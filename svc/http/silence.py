"""Waits for the answer of a server that sends nothing.

A server may work for a minute or two on an archive, or on the seal of a large tree. But a dead server may
still accept connections, and a broken network loses what is sent. So while nothing arrives, the client checks
every SILENT_SECONDS whether bytes of its request still leave this machine, as in a large upload over a slow
network. If none do, the client asks the server on another connection whether it works. It goes on waiting if
the server works, and gives up otherwise. Callers with a deadline wait until the deadline
instead."""

from __future__ import annotations

import fcntl
import socket
import struct
from collections.abc import Callable
from termios import TIOCOUTQ
from time import monotonic

import httpcore

from svc.http.connection_limits import ConnectionLimitExceeded

SILENT_SECONDS = 8.0  # without a byte in either direction
ASKING_SECONDS = 5.0  # that the server has to say that it works
# For which what was sent may not leave this machine, or an answer that has begun may pause, though the
# server works
STUCK_SECONDS = 60.0
ANSWER_SECONDS = 120.0  # for which a server that works may not answer, as while it seals a large tree
AT_ONCE = 0.001  # seconds in which a read tells whether something is there already


class ServerSilent(ConnectionLimitExceeded):
    """Raised if the server does not answer the request, and does not answer the question whether it works."""

    def __init__(self) -> None:
        super().__init__("did not answer, nor did it on another connection")


def read(
    receive: Callable[[float], bytes],
    unsent: Callable[[], int],
    works: Callable[[], bool],
    answering: bool = False,
) -> bytes:
    """Wait for data from the server and return it. Raises ServerSilent if the server does not work,
    ReadTimeout if the request does not reach it or the rest of an answer does not arrive. Raises
    ConnectionLimitExceeded if the server works for ANSWER_SECONDS without answering.

    `receive` is called with a number of seconds and waits that long for data. `unsent` returns the number of
    bytes that have not left this machine. `works` asks the server, on another connection, whether it works.
    `answering` says that a part of the answer's body has already arrived."""
    began = moved = monotonic()
    pending = unsent()
    while True:
        try:
            return receive(SILENT_SECONDS)
        except httpcore.ReadTimeout:
            now = monotonic()
        before, pending = pending, unsent()
        if pending == 0 or pending < before:
            moved = now
        if pending < before:
            began = now  # the server can begin its work only after what was sent
        if 0 < pending < before:
            continue
        if not works():
            try:
                return receive(AT_ONCE)
            except httpcore.ReadTimeout:
                raise ServerSilent from None
        if now - moved >= STUCK_SECONDS:
            raise httpcore.ReadTimeout("what was sent does not arrive")
        if answering and now - began >= STUCK_SECONDS:
            raise httpcore.ReadTimeout("the rest of the answer does not arrive")
        if now - began >= ANSWER_SECONDS:
            raise ConnectionLimitExceeded(f"works and has not answered for {ANSWER_SECONDS:g} s")


def unsent(line: socket.socket) -> int:
    """Return the number of bytes on a connection that the other side has not received yet; 0 if the system
    does not report it."""
    try:
        packed = fcntl.ioctl(line.fileno(), TIOCOUTQ, struct.pack("i", 0))
    except (OSError, ValueError):
        return 0
    return int(struct.unpack("i", packed)[0])
