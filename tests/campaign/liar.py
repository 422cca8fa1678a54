"""A relay that lies: the real one, with answers changed on their way to the client."""

from __future__ import annotations

import http.client
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import msgspec

from tests.patience import PATIENCE

Twist = Callable[[str, Any], Any]


class Liar:
    """`twist` gets the path of each request and its JSON answer, and gives the answer that is sent; `bend`
    does the same with bytes. Both None: an honest road. `made_up` are answers where the
    relay has none, by path. `asked` holds (method, path, headers, body)."""

    def __init__(self) -> None:
        self.upstream = 0
        self.twist: Twist | None = None
        self.bend: Callable[[str, bytes], bytes] | None = None
        self.made_up: dict[str, bytes] = {}
        self.broken: list[Exception] = []  # lies that could not be told: their tests prove nothing
        self.asked: list[tuple[str, str, dict[str, str], bytes]] = []
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self._server.daemon_threads = True
        self.address = f"http://127.0.0.1:{self._server.server_address[1]}"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True)
        self._thread.start()

    def ask(
        self, method: str, path: str, headers: dict[str, str], body: bytes
    ) -> tuple[int, list[Any], bytes]:
        """Put a request to the real relay as it stands: status, headers, body."""
        relay = http.client.HTTPConnection("127.0.0.1", self.upstream, timeout=PATIENCE)
        try:
            relay.request(method, path, body or None, headers)
            answer = relay.getresponse()
            return answer.status, answer.getheaders(), answer.read()
        finally:
            relay.close()

    def changed(self, path: str, content_type: str, body: bytes) -> bytes:
        try:
            if self.twist is not None and content_type.startswith("application/json"):
                return msgspec.json.encode(self.twist(path, msgspec.json.decode(body)))
            if self.bend is not None:
                return self.bend(path, body)
        except Exception as error:
            self.broken.append(error)
        return body

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(10)


def _handler(liar: Liar) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        wbufsize = 65536  # a head and its body in one segment: the second would wait 40 ms for a delayed ACK

        def do_GET(self) -> None:
            length = int(self.headers.get("Content-Length", 0))
            body = self.rfile.read(length)
            headers = dict(self.headers.items())
            liar.asked.append((self.command, self.path, headers, body))
            status, answered, content = liar.ask(self.command, self.path, headers, body)
            kept = {name.lower(): value for name, value in answered}
            if status < 300:
                content = liar.changed(self.path, kept.get("content-type", ""), content)
            elif self.path in liar.made_up:
                status, kept["content-type"], content = 200, "application/json", liar.made_up[self.path]
            self.send_response(status)
            for name in ("content-type", "retry-after", "location"):
                if name in kept:
                    self.send_header(name, kept[name])
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        do_POST = do_PUT = do_DELETE = do_PATCH = do_GET

        def log_request(self, code: int | str = "-", size: int | str = "-") -> None:
            """Say nothing of requests; errors are printed, since they close the connection."""

    return Handler
