"""An answer of HTTP/1.1 (RFC 9112) as it arrives on a connection.

Nothing in it is believed: head, chunk sizes and trailers are capped, and an answer whose length could be read
in two ways is refused.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Protocol

from localstore.core.limits import KIB

HEAD_MAX = 64 * KIB  # bytes of a head, or of the trailers
LINE_MAX = 4 * KIB  # of the line before a chunk
INTERIM_MAX = 16  # answers of 1xx before the one that counts
RECEIVE = 64 * KIB

_STATUS = re.compile(rb"HTTP/1\.([01]) ([1-5][0-9]{2})(?: [^\r\n\0]*)?")
_NAME = re.compile(rb"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_NEVER = re.compile(rb"[\r\n\0]")  # in a value
_FOLD = re.compile(rb"\r\n[ \t]+")
_CHUNK = re.compile(rb"([0-9A-Fa-f]{1,15})[ \t]*(?:;[^\r\n]*)?")
_LENGTH = re.compile(r"[0-9]{1,18}")
_BODILESS = (204, 304)


class TransportError(Exception):
    """The exchange failed below HTTP's own answers; `str` says why."""


class NotConnected(TransportError):
    """Nothing was sent."""


class TimedOut(TransportError):
    """Nothing came, or nothing was taken, for too long."""


class BrokeOff(TransportError):
    """The connection ended before the answer did."""


class NotHttp(TransportError):
    """What came is no answer of HTTP/1.1."""


class Receives(Protocol):
    """The next bytes of a connection, none at its end. TimedOut, BrokeOff."""

    def receive(self) -> bytes: ...


class Headers:
    """Fields in the order of their arrival; names in small letters."""

    def __init__(self, fields: Sequence[tuple[str, str]]) -> None:
        self._fields = fields

    def get(self, name: str, default: str = "") -> str:
        """The value, several joined by a comma."""
        found = [value for key, value in self._fields if key == name]
        return ", ".join(found) if found else default

    def tokens(self, name: str) -> list[str]:
        """The members of a list of words, in small letters."""
        return [word.strip().lower() for word in self.get(name).split(",") if word.strip()]

    def multi_items(self) -> list[tuple[str, str]]:
        return list(self._fields)

    def __contains__(self, name: str) -> bool:
        return any(key == name for key, _ in self._fields)


class Incoming:
    """One answer. `reusable`, once its body was read to the end: the connection can carry another request;
    never without `keeps`."""

    def __init__(self, source: Receives, method: str) -> None:
        """Reads the head. NotHttp, BrokeOff, TimedOut."""
        self._source = source
        self._held = b""
        for _ in range(INTERIM_MAX):
            version, self.status, self.headers = self._head()
            if self.status >= 200:
                break
        else:
            raise NotHttp("the answer never comes, only announcements of it")
        self.keeps = version == 1 and "close" not in self.headers.tokens("connection")
        self._bodiless = method == "HEAD" or self.status in _BODILESS
        self._chunked = not self._bodiless and "transfer-encoding" in self.headers
        if self._chunked and self.headers.tokens("transfer-encoding") != ["chunked"]:
            raise NotHttp("the answer has a transfer coding that nobody asked for")
        self._length = None if self._bodiless or self._chunked else self._declared()
        self.reusable = self.keeps and not self._held and (self._bodiless or self._length == 0)

    def body(self) -> Iterator[bytes]:
        """The body in pieces, as they come, without its chunks' frames. NotHttp, BrokeOff, TimedOut."""
        self.reusable = False
        if self._chunked:
            yield from self._chunks()
        elif self._length is not None:
            yield from self._exactly(self._length)
        elif not self._bodiless:
            self.keeps = False
            while piece := self._some():
                yield piece
        self.reusable = self.keeps and not self._held

    def _head(self) -> tuple[int, int, Headers]:
        while (end := self._held.find(b"\r\n\r\n")) < 0:
            if not b"HTTP/1.".startswith(self._held[:7]):
                raise NotHttp("illegal status line")
            if len(self._held) > HEAD_MAX:
                raise NotHttp("a head without end")
            self._held += self._more()
        head, self._held = self._held[:end], self._held[end + 4 :]
        first, *lines = _FOLD.sub(b" ", head).split(b"\r\n")
        status = _STATUS.fullmatch(first)
        if status is None or end > HEAD_MAX:
            raise NotHttp("illegal status line")
        return int(status[1]), int(status[2]), Headers([_field(line) for line in lines])

    def _declared(self) -> int | None:
        """The length that the head declares; None: until the connection ends."""
        if "content-length" not in self.headers:
            return None
        told = set(self.headers.tokens("content-length"))
        length = told.pop() if len(told) == 1 else ""
        if not _LENGTH.fullmatch(length):
            raise NotHttp("the answer has no one length")
        return int(length)

    def _chunks(self) -> Iterator[bytes]:
        while True:
            size = _CHUNK.fullmatch(self._line(LINE_MAX))
            if size is None:
                raise NotHttp("illegal chunk header")
            length = int(size[1], 16)
            if not length:
                break
            yield from self._exactly(length)
            if self._line(0):
                raise NotHttp("a chunk is longer than it said")
        room = HEAD_MAX
        while line := self._line(room):
            room -= len(line) + 2

    def _exactly(self, length: int) -> Iterator[bytes]:
        while length:
            piece = self._some()
            if not piece:
                raise BrokeOff("the server closed the connection within its answer")
            if len(piece) > length:
                piece, self._held = piece[:length], piece[length:]
            length -= len(piece)
            yield piece

    def _line(self, most: int) -> bytes:
        """What comes before the next line end, at most `most` bytes."""
        while (end := self._held.find(b"\r\n", 0, max(most, 0) + 2)) < 0:
            if len(self._held) >= most + 2:
                raise NotHttp("a line of the answer has no end")
            self._held += self._more()
        line, self._held = self._held[:end], self._held[end + 2 :]
        return line

    def _some(self) -> bytes:
        held, self._held = self._held, b""
        return held or self._source.receive()

    def _more(self) -> bytes:
        more = self._source.receive()
        if not more:
            raise BrokeOff("the server closed the connection without an answer")
        return more


def _field(line: bytes) -> tuple[str, str]:
    name, colon, value = line.partition(b":")
    if not colon or not _NAME.fullmatch(name) or _NEVER.search(value):
        raise NotHttp("illegal header line")
    return name.decode("ascii").lower(), value.strip(b" \t").decode("latin-1")
