"""Bodies in chunks (RFC 9112, 7.1), read by this one reader and strictly: what two readers could take apart
in two ways is refused, and so is what takes more work than it has content.

A chunk is its size in hexadecimal digits, at most one short extension, which is ignored, CRLF, as many
bytes, CRLF. Only SP and HTAB are spaces, and they stand before and in an extension alone. The last chunk has
the size 0 and no trailers.
"""

from __future__ import annotations

import re

AT_ONCE = 256  # chunks that are taken apart before others have their turn: about 0.3 ms
SMALL_CHUNKS = 1024  # that a body may have however little they hold
LEAST_BYTES = 64  # that each chunk beyond those holds, at the average
EXTENSION = 64  # bytes
SIZE_DIGITS = 15

_SIZE = re.compile(rb"([0-9A-Fa-f]{1,%d})(?:[ \t]*;[\t -~]{0,%d})?\r\n" % (SIZE_DIGITS, EXTENSION))
_BEGUN = re.compile(rb"[0-9A-Fa-f]{1,%d}(?:[ \t]*;[\t -~]{0,%d}|[ \t]*)\r?" % (SIZE_DIGITS, EXTENSION))
_LINE = SIZE_DIGITS + 2 * EXTENSION  # bytes of a line that has not ended, spaces included
_END = b"\r\n"


class Malformed(ValueError):
    """These bytes are no chunks, or too many small ones."""


class ChunkedBody:
    """One body. `ended`: its last chunk was read; what is left then belongs to the next request."""

    __slots__ = ("_chunks", "_left", "_received", "_stage", "busy", "ended")

    def __init__(self) -> None:
        self._stage = self._size
        self._left = self._chunks = self._received = 0
        self.ended = False
        self.busy = False  # whether `take` stopped so that others have their turn

    def take(self, arrived: bytearray) -> bytes:
        """Content that is there, and what it was wrapped in, off the front of `arrived`. Empty: more has to
        arrive first, unless the body has ended. Raises Malformed."""
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

    # Each stage reads one thing at `at` and answers where it ends; None: it has not arrived.

    def _size(self, arrived: bytearray, at: int, parts: list[bytes]) -> int | None:
        line = _SIZE.match(arrived, at)
        if line is None:
            rest = arrived[at : at + _LINE + 1]
            if rest and (len(rest) > _LINE or not _BEGUN.fullmatch(rest)):
                raise Malformed("a chunk has no size that can be read")
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
        found = arrived[at : at + 2]
        if found == _END:
            return at + 2
        if _END.startswith(found):
            return None
        raise Malformed("a chunk does not end where its size says, or there are trailers")
