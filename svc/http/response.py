"""An answer of a server whose body is read as it arrives."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import httpcore

from svc.http.connection import CountedStream

REDIRECTS = (301, 302, 303, 307, 308)


class Headers:
    """Header fields; names are lower case."""

    def __init__(self, raw: list[tuple[bytes, bytes]]) -> None:
        self._items = [(name.decode("ascii").lower(), _text(value)) for name, value in raw]

    def get(self, name: str, default: str = "") -> str:
        """All values of this lower-case name, joined by commas."""
        values = [value for key, value in self._items if key == name]
        return ", ".join(values) if values else default

    def multi_items(self) -> list[tuple[str, str]]:
        """Every field, also repeated ones."""
        return list(self._items)


class Response:
    """`origin`: of the request. `extensions`: notes of the client, and the network stream of a connection
    that switched protocols."""

    def __init__(self, origin: str, answer: httpcore.Response, stream: CountedStream) -> None:
        self.origin = origin
        self.status_code = answer.status
        self.headers = Headers(answer.headers)
        self.extensions: dict[str, Any] = {"network_stream": answer.extensions["network_stream"]}
        self.received = 0  # bytes of the body
        self._answer, self._stream = answer, stream

    @property
    def is_success(self) -> bool:
        return 200 <= self.status_code < 300

    @property
    def redirects(self) -> bool:
        return self.status_code in REDIRECTS and bool(self.headers.get("location"))

    def pieces(self) -> Iterator[bytes]:
        """The body, once. Raises the errors of `svc.http.pool.FAILURES`, ConnectionLimitExceeded, Stopped."""
        for piece in self._answer.iter_stream():
            self._stream.limits.content += len(piece)
            self.received += len(piece)
            yield piece

    def close(self) -> None:
        self._stream.release()  # before the next request may have the connection
        self._answer.close()


def _text(value: bytes) -> str:
    try:
        return value.decode()
    except UnicodeDecodeError:
        return value.decode("latin-1")
