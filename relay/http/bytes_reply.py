"""Conditional requests and range requests, for answers that are bytes (RFC 9110 §13, §14)."""

from __future__ import annotations

import contextlib
import re
from collections.abc import AsyncIterator

_RANGE = re.compile(r"bytes=([0-9]{0,18})-([0-9]{0,18})")


def not_modified(if_none_match: str | None, etag: str) -> bool:
    """Whether the header If-None-Match names `etag` (a quoted strong tag). Tags are compared weakly, as GET
    requires."""
    if if_none_match is None:
        return False
    held = [tag.strip().removeprefix("W/") for tag in if_none_match[:8192].split(",")]
    return "*" in held or etag in held


def parse_range(
    header: str | None, if_range: str | None, etag: str | None, length: int
) -> tuple[int, int] | None:
    """The range of bytes that a Range header asks for, as (start, end) with `end` excluded; None for all
    bytes.

    Several ranges, other units and a stale If-Range give all bytes, as the RFC allows. Raises ValueError for
    a range outside of `length` bytes.
    """
    match = _RANGE.fullmatch(header.strip()) if header else None
    if match is None or (if_range is not None and if_range != etag):
        return None
    first, last = match[1], match[2]
    if first == "" and last == "":
        return None
    if first == "":
        start, end = max(0, length - int(last)), length
    else:
        start, end = int(first), min(length, int(last) + 1 if last else length)
        if last and int(last) < int(first):
            return None
    if start >= end:
        raise ValueError(f"bytes */{length}")
    return start, end


async def cut(stream: AsyncIterator[bytes], start: int, end: int) -> AsyncIterator[bytes]:
    """Yields the bytes of a stream from position `start` to the one before `end`. The stream is then closed;
    the rest of it is not read."""
    position = 0
    try:
        async for part in stream:
            piece = part[max(0, start - position) : max(0, end - position)]
            position += len(part)
            if piece:
                yield piece
            if position >= end:
                return
    finally:
        with contextlib.suppress(AttributeError):  # an iterator without aclose has nothing to close
            await stream.aclose()  # type: ignore[attr-defined]
