"""Writes bytes at a position of an open file."""

from __future__ import annotations

import os


def write_at(fd: int, data: bytes, offset: int) -> None:
    """Write all of `data` at `offset` of the open file `fd`. The position of the file does not move."""
    view = memoryview(data)
    while view:
        count = os.pwrite(fd, view, offset)
        view, offset = view[count:], offset + count
