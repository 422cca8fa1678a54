"""The link to a confined process. It carries the relay's first message and the connections that the process
requests."""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any

import msgspec

from localstore.core.identity.ssh import CONNECT, SIGN, TOLD_BYTES, SessionStart, SignatureAnswer
from relay.ssh.agent import SignatureRefused, read_request
from relay.ssh.door import SshDoor

CONNECTIONS = 64  # open at once, of one session
BURST, PER_SECOND = 64.0, 8.0  # requests on the link
AT_ONCE = 16  # requests that are read without looking at anything else


class Link:
    """The relay's end of a link to a confined process. `theirs`: the socket for the process, which the relay
    closes once the process has inherited it. `sign`: signs bytes, or raises SignatureRefused."""

    def __init__(self, door: SshDoor, address: str, sign: Callable[[bytes], Awaitable[bytes]]) -> None:
        self._door, self._address, self._sign = door, address, sign
        self._ours, self.theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._ours.setblocking(False)
        self._open: set[Any] = set()
        self._entering: set[asyncio.Task[None]] = set()
        self._loop = asyncio.get_running_loop()
        self._tokens, self._at = BURST, self._loop.time()

    def begin(self, welcome: SessionStart) -> None:
        """Send the first message and start listening."""
        message = msgspec.json.encode(welcome)
        if len(message) > TOLD_BYTES:
            raise ValueError("a command line is too long")
        self._ours.send(message)
        self._loop.add_reader(self._ours.fileno(), self._read)

    def close(self) -> None:
        """Close the link and the connections that it opened."""
        if self._ours.fileno() >= 0:
            self._loop.remove_reader(self._ours.fileno())
        self._ours.close()
        self.theirs.close()
        for connection in list(self._open):
            connection.abort()
        for task in list(self._entering):
            task.cancel()

    def _read(self) -> None:
        for _ in range(AT_ONCE):
            try:
                data, fds, _, _ = socket.recv_fds(self._ours, 16, 1)
            except BlockingIOError:
                return
            except OSError:
                data, fds = b"", []
            if not data:
                for fd in fds:
                    os.close(fd)
                self._loop.remove_reader(self._ours.fileno())
                return
            for fd in fds:
                self._take(data, fd)

    def _take(self, data: bytes, fd: int) -> None:
        now = self._loop.time()
        self._tokens = min(BURST, self._tokens + (now - self._at) * PER_SECOND) - 1
        self._at = now
        too_many = self._tokens < 0 or len(self._open) + len(self._entering) >= CONNECTIONS
        self._tokens = max(self._tokens, 0.0)
        try:
            sock = socket.socket(fileno=fd)
        except OSError:
            os.close(fd)
            return
        pair = sock.family == socket.AF_UNIX and sock.type == socket.SOCK_STREAM
        if data not in (CONNECT, SIGN) or too_many or not pair:
            sock.close()
            return
        sock.setblocking(False)
        work = self._enter(sock) if data == CONNECT else self._answer(sock)
        task = self._loop.create_task(work)
        self._entering.add(task)
        task.add_done_callback(self._entering.discard)

    async def _enter(self, sock: socket.socket) -> None:
        with suppress(OSError):
            await self._door.enter(sock, self._address, self._open)

    async def _answer(self, sock: socket.socket) -> None:
        """Read a message from this socket, sign it and send the signature back."""
        with sock, suppress(OSError):  # TimeoutError among them
            message = await read_request(sock)
            try:
                answer = SignatureAnswer(await self._sign(message))
            except SignatureRefused as refusal:
                answer = SignatureAnswer(refused=str(refusal))
            await self._loop.sock_sendall(sock, msgspec.json.encode(answer))
