"""A server that answers whatever a test wants, byte for byte."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager

TLS_HANDSHAKE = 0x16  # the first byte of a client that speaks TLS


def http(status: str, body: bytes = b"", content_type: str = "application/json", *headers: str) -> bytes:
    lines = [f"HTTP/1.1 {status}", f"Content-Type: {content_type}", f"Content-Length: {len(body)}", *headers]
    return "\r\n".join([*lines, "Connection: close", "", ""]).encode() + body


Answer = bytes | Callable[[socket.socket], None]


def dripping(first: bytes, drop: bytes, gap: float = 0.01, most: int = 2000) -> Answer:
    """`first` at once, then `drop` again and again, until the client has had enough."""

    def answer(connection: socket.socket) -> None:
        connection.sendall(first)
        for _ in range(most):
            if gap:
                time.sleep(gap)
            connection.sendall(drop)

    return answer


class Hostile:
    """`requests` holds what arrived, one entry for each connection, in order; nothing is in them if the
    answers are to read it (`unread`)."""

    def __init__(self, answers: Iterable[Answer], deaf: bool = False, unread: bool = False) -> None:
        self.requests: list[bytes] = []
        self._answers = list(answers)
        self._deaf, self._unread = deaf, unread
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.origin = f"http://127.0.0.1:{self._socket.getsockname()[1]}"
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def _serve(self) -> None:
        for number in range(10_000):
            try:
                connection, _ = self._socket.accept()
            except OSError:
                return
            with connection:
                connection.settimeout(5)
                try:
                    if self._deaf:
                        _sip(connection)
                        continue
                    self.requests.append(b"" if self._unread else _read_request(connection))
                    answer = self._answers[min(number, len(self._answers) - 1)]
                    if isinstance(answer, bytes):
                        connection.sendall(answer)
                    else:
                        answer(connection)
                except OSError:
                    continue

    def close(self) -> None:
        self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()
        self._thread.join(5)


@contextmanager
def hostile(*answers: Answer, deaf: bool = False, unread: bool = False) -> Iterator[Hostile]:
    """Give these answers, one for each connection; the last one for ever. `deaf`: none, and take what is sent
    in sips. `unread`: before the request is read."""
    server = Hostile(answers, deaf, unread)
    try:
        yield server
    finally:
        server.close()


def _sip(connection: socket.socket) -> None:
    """Take a little of a request now and then until the client goes away."""
    for _ in range(100):
        if not connection.recv(4096):
            return
        time.sleep(0.01)


def _read_request(connection: socket.socket) -> bytes:
    data = b""
    while b"\r\n\r\n" not in data:
        piece = connection.recv(65536)
        if not piece:
            return data
        data += piece
        if data[0] == TLS_HANDSHAKE:
            return data
    head, _, body = data.partition(b"\r\n\r\n")
    length = next(
        (
            int(line.split(b":")[1])
            for line in head.split(b"\r\n")
            if line.lower().startswith(b"content-length:")
        ),
        0,
    )
    while len(body) < length:
        piece = connection.recv(65536)
        if not piece:
            break
        body += piece
    return head + b"\r\n\r\n" + body
