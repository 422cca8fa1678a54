"""A server that answers whatever a test wants, byte for byte."""

from __future__ import annotations

import socket
import ssl
import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager

from svc.api.connection import Response, Wire

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"


def http(status: str, body: bytes = b"", content_type: str = "application/json", *headers: str) -> bytes:
    lines = [f"HTTP/1.1 {status}", f"Content-Type: {content_type}", f"Content-Length: {len(body)}", *headers]
    return "\r\n".join([*lines, "Connection: close", "", ""]).encode() + body


class Hostile:
    """`requests` holds what arrived, one entry for each connection, in order."""

    def __init__(self, answers: Iterable[bytes]) -> None:
        self.requests: list[bytes] = []
        self._answers = list(answers)
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
                    self.requests.append(read_request(connection))
                    connection.sendall(self._answers[min(number, len(self._answers) - 1)])
                except OSError:
                    continue

    def close(self) -> None:
        self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()
        self._thread.join(5)


@contextmanager
def hostile(*answers: bytes) -> Iterator[Hostile]:
    """Give these answers, one for each connection; the last one for ever."""
    server = Hostile(answers)
    try:
        yield server
    finally:
        server.close()


def read_request(connection: socket.socket) -> bytes:
    data = b""
    while b"\r\n\r\n" not in data:
        piece = connection.recv(65536)
        if not piece:
            return data
        data += piece
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


class Scripted:
    """Gives, on each connection, the next list of answers, one to each request; then closes it.

    `heard`: for each connection the requests that came on it."""

    def __init__(self, conversations: Sequence[Sequence[bytes]], tls: ssl.SSLContext | None = None) -> None:
        self.heard: list[list[bytes]] = []
        self.asked = threading.Event()
        self._conversations, self._tls = conversations, tls
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.port = self._socket.getsockname()[1]
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def _serve(self) -> None:
        for answers in self._conversations:
            try:
                connection, _ = self._socket.accept()
                heard: list[bytes] = []
                self.heard.append(heard)
                if self._tls is not None:
                    connection = self._tls.wrap_socket(connection, server_side=True)
            except OSError:
                continue
            with connection:
                connection.settimeout(5)
                for answer in answers:
                    heard.append(read_request(connection))
                    self.asked.set()
                    connection.sendall(answer)

    def close(self) -> None:
        self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()
        self._thread.join(5)


@contextmanager
def scripted(*conversations: Sequence[bytes], tls: ssl.SSLContext | None = None) -> Iterator[Scripted]:
    server = Scripted(conversations, tls)
    try:
        yield server
    finally:
        server.close()


def wire_to(port: int, scheme: str = "http", host: str = "127.0.0.1", proxies: bool = False) -> Wire:
    return Wire(f"{scheme}://{host}:{port}", f"{host}:{port}", proxies)


def get(wire: Wire, target: str = "/", method: str = "GET") -> Response:
    return wire.send(method, target, {}, b"", None, repeatable=True)


def read(response: Response) -> bytes:
    try:
        return b"".join(response.iter_raw())
    finally:
        response.close()
