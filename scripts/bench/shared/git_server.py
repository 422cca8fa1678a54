"""A git server for comparisons: the real `git http-backend` over HTTP on loopback."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path


def _handler(root: Path) -> type[BaseHTTPRequestHandler]:
    class Backend(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.0"

        def do_GET(self) -> None:
            self._serve()

        def do_POST(self) -> None:
            self._serve()

        def log_message(self, format: str, *args: object) -> None:
            return

        def _body(self) -> bytes:
            if self.headers.get("Transfer-Encoding", "").lower() != "chunked":
                return self.rfile.read(int(self.headers.get("Content-Length") or 0))
            pieces = []
            while size := int(self.rfile.readline().split(b";")[0], 16):
                pieces.append(self.rfile.read(size))
                self.rfile.readline()
            self.rfile.readline()
            return b"".join(pieces)

        def _serve(self) -> None:
            path, _, query = self.path.partition("?")
            body = self._body()
            environment = {
                "PATH": os.environ["PATH"],
                "GIT_PROJECT_ROOT": str(root),
                "GIT_HTTP_EXPORT_ALL": "1",
                "PATH_INFO": path,
                "QUERY_STRING": query,
                "REQUEST_METHOD": self.command,
                "CONTENT_TYPE": self.headers.get("Content-Type", ""),
                "CONTENT_LENGTH": str(len(body)),
                "HTTP_CONTENT_ENCODING": self.headers.get("Content-Encoding", ""),
                "GIT_PROTOCOL": self.headers.get("Git-Protocol", ""),
                "REMOTE_USER": "bench",
                "REMOTE_ADDR": "127.0.0.1",
            }
            answer = subprocess.run(["git", "http-backend"], input=body, env=environment, capture_output=True)
            head, _, rest = answer.stdout.partition(b"\r\n\r\n")
            headers = [line.split(b": ", 1) for line in head.split(b"\r\n") if b": " in line]
            status = next((value for name, value in headers if name.lower() == b"status"), b"200 OK")
            self.wfile.write(b"HTTP/1.0 " + status + b"\r\n")
            self.wfile.write(b"".join(n + b": " + v + b"\r\n" for n, v in headers if n.lower() != b"status"))
            self.wfile.write(b"\r\n" + rest)

    return Backend


@contextlib.contextmanager
def git_server(root: Path) -> Iterator[tuple[int, str]]:
    """A context that runs the server in its own process and yields (process id, base URL)."""
    child = subprocess.Popen(
        [sys.executable, "-m", __spec__.name, str(root)],
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        port = int(child.stdout.readline()) if child.stdout else 0
        yield child.pid, f"http://127.0.0.1:{port}"
    finally:
        child.terminate()
        child.wait()


if __name__ == "__main__":
    server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(Path(sys.argv[1])))
    print(server.server_port, flush=True)
    server.serve_forever()
