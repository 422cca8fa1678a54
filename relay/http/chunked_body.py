"""A strict reader of chunked bodies (RFC 9112, 7.1). It refuses everything that two readers could interpret
differently, and bodies with so many small chunks that they cause too much work.

A chunk is its size in hexadecimal digits, at most one short extension, which is ignored, CRLF, that many
bytes, CRLF. Only SP and HTAB count as spaces, and only before and in an extension. The last chunk has the
size 0 and no trailers.
"""

from __future__ import annotations

import re

AT_ONCE = 256  # chunks parsed before other requests have a turn: about 0.3 ms
SMALL_CHUNKS = 1024  # chunks of any size that a body may have
LEAST_BYTES = 64  # average content of each chunk beyond those
EXTENSION = 64  # bytes
SIZE_DIGITS = 15

_SIZE = re.compile(rb"([0-9A-Fa-f]{1,%d})(?:[ \t]*;[\t -~]{0,%d})?\r\n" % (SIZE_DIGITS, EXTENSION))
_BEGUN = re.compile(rb"[0-9A-Fa-f]{1,%d}(?:[ \t]*;[\t -~]{0,%d}|[ \t]*)\r?" % (SIZE_DIGITS, EXTENSION))
_LINE = SIZE_DIGITS + 2 * EXTENSION  # bytes of a line that has not ended, spaces included
_END = b"\r\n"


class Malformed(ValueError):
    """Raised if the bytes are not valid chunks, or have too many small chunks."""


class ChunkedBody:
    """The parser of one body. `ended`: the last chunk was read; further bytes belong to the next request."""

    __slots__ = ("_chunks", "_left", "_received", "_stage", "busy", "ended")

    def __init__(self) -> None:
        self._stage = self._size
        self._left = self._chunks = self._received = 0
        self.ended = False
        self.busy = False  # whether `read_content` stopped so that other requests have a turn

    def read_content(self, arrived: bytearray) -> bytes:
        """Take the content of the chunks that have arrived from the front of `arrived`, and return it.
        Returns no bytes if more must arrive first, or if the body has ended. Raises Malformed for bytes that
        are not valid chunks."""
        parts: list[bytes] = []
        at, most = 0, self._chunks + AT_ONCE
        self.busy = False
        while not self.ended:
            if self._chunks >= most:
                self.busy = True
                break
            after = self._stage(arrived, at, parts)
            if after is None:
                break
            at = after
        del arrived[:at]
        return b"".join(parts)

    # Each stage parses one element at `at` and returns where it ends; None: it has not arrived completely.

    def _size(self, arrived: bytearray, at: int, parts: list[bytes]) -> int | None:
        line = _SIZE.match(arrived, at)
        if line is None:
            rest = arrived[at : at + _LINE + 1]
            if rest and (len(rest) > _LINE or not _BEGUN.fullmatch(rest)):
                raise Malformed("a chunk has no valid size")
            return None
        self._left = int(line[1], 16)
        self._chunks += 1
        if self._chunks > SMALL_CHUNKS + self._received // LEAST_BYTES:
            raise Malformed("the body comes in too many small chunks")
        self._stage = self._content if self._left else self._last
        return line.end()

    def _content(self, arrived: bytearray, at: int, parts: list[bytes]) -> int | None:
        part = bytes(arrived[at : at + self._left])
        if not part:
            return None
        parts.append(part)
        self._received += len(part)
        self._left -= len(part)
        if not self._left:
            self._stage = self._between
        return at + len(part)

    def _between(self, arrived: bytearray, at: int, parts: list[bytes]) -> int | None:
        end = self._line_end(arrived, at)
        if end is not None:
            self._stage = self._size
        return end

    def _last(self, arrived: bytearray, at: int, parts: list[bytes]) -> int | None:
        end = self._line_end(arrived, at)
        self.ended = end is not None
        return end

    @staticmethod
    def _line_end(arrived: bytearray, at: int) -> int | None:
        ending = arrived[at : at + 2]
        if ending == _END:
            return at + 2
        if _END.startswith(ending):
            return None
        raise Malformed("a chunk does not end where its size says, or there are trailers")
