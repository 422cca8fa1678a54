"""HTTP/1.1 as one client speaks it (RFC 9112): the head of a request, and an answer read strictly.

An answer that could be read in two ways is Malformed: two lengths, a coding other than `chunked`, a folded
header. Lines have a length and their number a limit, so that nothing here grows with what a server sends.
"""

from __future__ import annotations

import string
from collections.abc import Iterable, Iterator
from typing import NamedTuple, Protocol

LINE_BYTES, LINES = 64 * 1024, 100  # of one line, and lines of a head or of trailers
PIECE_BYTES = 64 * 1024  # of a body, at most at once

_TOKEN = b"!#$%&'*+-.^_`|~" + (string.ascii_letters + string.digits).encode()
_HEX = string.hexdigits.encode()
_NUMBER_DIGITS = 15  # of a length: more than any file has
_BLANK = b" \t"

Fields = list[tuple[bytes, bytes]]
"""Headers as they came: names and values, in order."""


class Reader(Protocol):
    """What arrives, as `io.BufferedReader` gives it."""

    def readline(self, size: int, /) -> bytes:
        """Up to the end of a line, at most `size` bytes; empty at the end."""

    def read1(self, size: int, /) -> bytes:
        """What there is, at least a byte and at most `size`; empty at the end."""


class Malformed(Exception):
    """The answer is not HTTP; the message says what is wrong with it."""


class BrokenOff(Exception):
    """The connection ended before the answer did; the message says where."""


class Head(NamedTuple):
    """What stands before the body. `length`: of the body in bytes; None with `chunked`, or if it ends with
    the connection. `lasting`: the connection may carry another request after it."""

    status: int
    reason: bytes
    fields: Fields
    chunked: bool
    length: int | None
    lasting: bool


def request_head(method: str, target: bytes, fields: Iterable[tuple[bytes, bytes]]) -> bytes:
    """The head of a request. ValueError for what would be read as more lines than one, or as another name."""
    lines = [b"%s %s HTTP/1.1" % (method.encode("ascii"), target)]
    for name, value in fields:
        if not _only(name, _TOKEN):
            raise ValueError(f"a header cannot be called {name!r}")
        lines.append(b"%s: %s" % (name, value))
    for line in lines:
        if not _one_line(line):
            raise ValueError(f"{line!r} is not one line")
    return b"\r\n".join((*lines, b"", b""))


def read_head(reader: Reader, method: str) -> Head:
    """The head of the final answer to a request with this `method`; notes of progress (1xx) are passed
    over."""
    while True:
        line = _line(reader)
        version, _, rest = line.partition(b" ")
        code, _, reason = rest.partition(b" ")
        if version not in (b"HTTP/1.1", b"HTTP/1.0") or len(code) != 3 or not code.isdigit():
            raise Malformed(f"it begins with {line[:100]!r}")
        fields = _fields(reader)
        if int(code) >= 200:
            return _framed(int(code), reason, fields, method, modern=version == b"HTTP/1.1")


def _framed(status: int, reason: bytes, fields: Fields, method: str, modern: bool) -> Head:
    """The head with what it says of its body (RFC 9112 §6.3)."""
    codings = _members(fields, b"transfer-encoding")
    lengths = set(_members(fields, b"content-length"))
    lasting = modern and b"close" not in _members(fields, b"connection")
    if codings and (not modern or lengths or codings != [b"chunked"]):
        raise Malformed("it tells the length of its body in more than one way")
    if len(lengths) > 1 or not all(one.isdigit() and len(one) <= _NUMBER_DIGITS for one in lengths):
        raise Malformed("the length of its body is no number")
    if method == "HEAD" or status in (204, 304):
        return Head(status, reason, fields, False, 0, lasting)
    if codings:
        return Head(status, reason, fields, True, None, lasting)
    length = int(lengths.pop()) if lengths else None
    return Head(status, reason, fields, False, length, lasting and length is not None)


def body(reader: Reader, head: Head) -> Iterator[bytes]:
    """The body in pieces, as they arrive."""
    if head.chunked:
        yield from _chunks(reader)
    elif head.length is not None:
        yield from _counted(reader, head.length)
    else:
        while piece := reader.read1(PIECE_BYTES):
            yield piece


def _counted(reader: Reader, left: int) -> Iterator[bytes]:
    while left:
        piece = reader.read1(min(left, PIECE_BYTES))
        if not piece:
            raise BrokenOff(f"the connection was closed {left} bytes before the end of the body")
        left -= len(piece)
        yield piece


def _chunks(reader: Reader) -> Iterator[bytes]:
    while size := _chunk_size(_line(reader)):
        yield from _counted(reader, size)
        if _line(reader):
            raise Malformed("a chunk of its body is longer than it says")
    _fields(reader)  # trailers


def _chunk_size(line: bytes) -> int:
    size = line.partition(b";")[0].rstrip(_BLANK)
    if not _only(size, _HEX) or len(size) > _NUMBER_DIGITS:
        raise Malformed(f"a chunk of its body begins with {line[:100]!r}")
    return int(size, 16)


def _fields(reader: Reader) -> Fields:
    """The lines up to an empty one."""
    found: Fields = []
    while line := _line(reader):
        name, colon, value = line.partition(b":")
        if not colon or not _only(name, _TOKEN) or not _one_line(value):
            raise Malformed(f"a header of it is {line[:100]!r}")
        if len(found) == LINES:
            raise Malformed(f"it has more than {LINES} headers")
        found.append((name, value.strip(_BLANK)))
    return found


def _members(fields: Fields, name: bytes) -> list[bytes]:
    """The members of a header in lower case; they may come in one list or in several lines."""
    lists = (value for key, value in fields if key.lower() == name)
    return [one.strip(_BLANK).lower() for value in lists for one in value.split(b",")]


def _line(reader: Reader) -> bytes:
    """The next line, without its end."""
    line = reader.readline(LINE_BYTES)
    if not line.endswith(b"\n"):
        if len(line) == LINE_BYTES:
            raise Malformed(f"a line of it has more than {LINE_BYTES} bytes")
        raise BrokenOff("the connection was closed before the answer" + (" was whole" if line else ""))
    return line[:-2] if line.endswith(b"\r\n") else line[:-1]


def _only(text: bytes, allowed: bytes) -> bool:
    """Whether it is made of these bytes, and not empty."""
    return bool(text) and not text.translate(None, allowed)


def _one_line(text: bytes) -> bool:
    return not (b"\r" in text or b"\n" in text or b"\0" in text)
