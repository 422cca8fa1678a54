"""Reads frames of a pack: compressed blocks of objects. The bytes are untrusted."""

from __future__ import annotations

import threading
from collections.abc import Callable

import zstandard

from localstore.core.errors import Invalid, TooLarge
from localstore.core.model import limits

RAW, ZSTD = 0, 1  # codecs
UNPACKABLE = "a frame of the pack does not decompress"
_ZSTD_HEADER_MAX = 18  # bytes (RFC 8878 §3.1.1)
_PIECE = 32 * limits.KIB  # fetched at once

Bytes = bytes | bytearray | memoryview


class FetchedBytes:
    """The stored bytes of a frame that are fetched piece by piece, as they are needed. `fetch(size, at)`:
    returns `size` bytes of the source from `at` on. `offset`, `length`: where the frame is in the source."""

    __slots__ = ("_at", "_end", "_fetch")

    def __init__(self, fetch: Callable[[int, int], bytes], offset: int, length: int) -> None:
        self._fetch = fetch
        self._at, self._end = offset, offset + length

    def read(self, size: int) -> bytes:
        """The next bytes of the frame, at most `size`; empty at the end."""
        data = self._fetch(min(size, self._end - self._at), self._at)
        self._at += len(data)
        return data

    def rest(self) -> bytes:
        """All remaining bytes of the frame."""
        parts = [self.read(self._end - self._at)]
        while parts[-1] and self._at < self._end:
            parts.append(self.read(self._end - self._at))
        return b"".join(parts)

    def head(self, size: int) -> bytes:
        """The next `size` bytes, without consuming them."""
        return self._fetch(min(size, self._end - self._at), self._at)


Stored = Bytes | FetchedBytes


def read_object(stored: Stored, codec: int, raw_len: int, offset: int, size: int) -> memoryview:
    """An object of a frame: the `size` bytes at `offset` of the frame's raw (uncompressed) bytes.
    Decompresses only as much as needed. `stored`: the frame's bytes as stored; `codec`: whether they are
    compressed.

    The caller has to compare the object with its digest. Raises Invalid if the frame decompresses to fewer
    bytes, if its length differs from `raw_len`, or if the object is outside of the frame."""
    end = offset + size
    if offset < 0 or size < 0 or end > raw_len:
        raise Invalid("an object lies outside of its frame")
    if codec == ZSTD and end < raw_len:
        _require_length(stored, raw_len)
        return memoryview(_beginning(stored, end))[offset:]
    whole = stored.rest() if isinstance(stored, FetchedBytes) else stored
    return raw_bytes(whole, codec, raw_len)[offset:end]


def _beginning(stored: Stored, end: int) -> bytes:
    """The first `end` raw (uncompressed) bytes of a compressed frame. Raises Invalid if it has fewer."""
    try:
        raw = _local.decompressor.stream_reader(stored, read_size=_PIECE).read(end)  # type: ignore[arg-type]
    except zstandard.ZstdError:
        raise Invalid(UNPACKABLE) from None
    if len(raw) != end:
        raise Invalid(UNPACKABLE)
    return raw


class _Local(threading.local):
    """One decompressor per thread, because creating one takes longer than most frames."""

    def __init__(self) -> None:
        self.decompressor = zstandard.ZstdDecompressor()


_local = _Local()


def raw_bytes(stored: Bytes, codec: int, raw_len: int) -> memoryview:
    """All raw (uncompressed) bytes of a frame. `codec`, `raw_len`: as the pack's table says. Raises Invalid
    if the frame does not match them."""
    if codec == RAW:
        raw = memoryview(stored)
    elif codec == ZSTD:
        raw = memoryview(_decompress(stored, raw_len))
    else:
        raise Invalid(f"unknown codec {codec} in a pack")
    if len(raw) != raw_len:
        raise Invalid("a frame of the pack has another length than its table says")
    return raw


def _decompress(stored: Bytes, raw_len: int) -> bytes:
    _require_length(stored, raw_len)
    try:
        return _local.decompressor.decompress(stored, allow_extra_data=False)
    except zstandard.ZstdError:
        raise Invalid(UNPACKABLE) from None


def _require_length(stored: Stored, raw_len: int) -> None:
    """Check the length of a frame before it is decompressed, because the decompressor allocates a buffer of
    that length. Raises Invalid unless the zstd header has the length `raw_len` (from the pack's table),
    TooLarge if it is above FRAME_RAW_MAX."""
    if raw_len > limits.FRAME_RAW_MAX:
        raise TooLarge(f"a frame of a pack holds at most {limits.FRAME_RAW_MAX} bytes")
    head = stored.head(_ZSTD_HEADER_MAX) if isinstance(stored, FetchedBytes) else stored[:_ZSTD_HEADER_MAX]
    try:
        declared = zstandard.get_frame_parameters(head).content_size
    except zstandard.ZstdError:
        raise Invalid(UNPACKABLE) from None
    if declared != raw_len:
        raise Invalid("a frame of the pack has another length than its table says")
