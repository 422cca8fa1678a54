"""A server that webhooks are sent to, on a thread of its own. What it does with a request, its path says."""

from __future__ import annotations

import contextlib
import json
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple

from tests.patience import PATIENCE

GIB = 1024**3


class Received(NamedTuple):
    """`at`: seconds since 1970."""

    path: str
    headers: dict[str, str]
    body: bytes
    at: float

    @property
    def message(self) -> Any:
        return json.loads(self.body)


class Receiver(ThreadingHTTPServer):
    """`/ok/…` answers 204, `/500/…` and the like that status, `/hang/…` nothing, `/drip/…` a byte of a head
    now and then, `/giant/…` 1 GiB, `/head/…` a head without end, `/to/PATH` a redirect."""

    daemon_threads = True
    request_queue_size = 256

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.received: list[Received] = []
        self.come = threading.Condition()
        self.over = threading.Event()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"

    def wait(self, count: int, path: str = "/", seconds: float = PATIENCE) -> list[Received]:
        """What came for addresses that begin so, once it is so many."""
        with self.come:
            enough = self.come.wait_for(lambda: len(self.of(path)) >= count, seconds)
        assert enough, (len(self.of(path)), [one.path for one in self.received])
        return self.of(path)

    def of(self, path: str) -> list[Received]:
        return [one for one in self.received if one.path.startswith(path)]


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Receiver

    def do_POST(self) -> None:
        length = int(self.headers.get("content-length", 0))
        body = self.rfile.read(length)
        self.close_connection = True
        if len(body) < length:  # whoever sent it is dead
            return
        with self.server.come:
            told = {name.lower(): value for name, value in self.headers.items()}
            self.server.received.append(Received(self.path, told, body, time.time()))
            self.server.come.notify_all()
        with contextlib.suppress(OSError):
            self._answer(self.path.split("/")[1])

    do_GET = do_POST

    def _answer(self, how: str) -> None:
        if how == "hang":
            self.server.over.wait()
        elif how == "drip":
            for byte in b"HTTP/1.1 200 OK\r\nx: " + b"a" * 1000:
                self.wfile.write(bytes([byte]))
                if self.server.over.wait(0.2):
                    return
        elif how == "head":
            self.wfile.write(b"HTTP/1.1 200 OK\r\n")
            while not self.server.over.is_set():
                self.wfile.write(b"x-more: " + b"a" * 1000 + b"\r\n")
        elif how == "giant":
            self.send_response(200)
            self.send_header("content-length", str(GIB))
            self.end_headers()
            piece = bytes(1024**2)
            for _ in range(GIB // len(piece)):
                self.wfile.write(piece)
        elif how == "to":
            self.send_response(302)
            self.send_header("location", self.path.removeprefix("/to"))
            self._end(b"")
        else:
            self.send_response(204 if how == "ok" else int(how))
            self._end(b"" if how == "ok" else b"no \xff\x1b[2J thanks")

    def _end(self, body: bytes) -> None:
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        pass


@contextlib.contextmanager
def receiving() -> Iterator[Receiver]:
    server = Receiver()
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.over.set()
        server.shutdown()
        thread.join()
        server.server_close()
