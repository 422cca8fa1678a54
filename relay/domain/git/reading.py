"""Answers with the output of `git upload-pack`. Each reader has a git process of its own, which ends when the
reader disconnects. The number of readers is limited.

A pool of threads starts the processes. The input of a process is a file, so that nothing has to feed it. The
event loop reads its output.
"""

from __future__ import annotations

import asyncio
import os
import subprocess
import tempfile
import time
from typing import Any

from localstore.core.errors import Unavailable
from localstore.core.model.limits import KIB
from relay.domain.git import process
from relay.domain.git.cache import Cache
from relay.memory.readers import Readers

PIECE = 64 * KIB
SILENCE = 120.0  # seconds that a process may work without a word
GRACE, SLOWEST = 300.0, 16 * KIB  # seconds that an answer may take, and one more for each so many bytes


class TooLong(TimeoutError):
    """Raised if git works too long, or if its reader reads too slowly. The connection is then closed."""


class PackStream:
    """A stream that yields the bytes `first`, then the output of one git process. `aclose` ends the process
    and makes room for another reader, even if nothing was read."""

    def __init__(self, readers: Readers, address: str, hold: int, first: bytes) -> None:
        self._readers, self._address, self._hold, self._first = readers, address, hold, first
        self._process: subprocess.Popen[bytes] | None = None
        self._began, self._sent = time.monotonic(), 0
        self._closed = False

    async def begin(self, words: tuple[str, ...], body: bytes, protocol: str) -> None:
        task = asyncio.ensure_future(process.in_start(_start, words, body, protocol, self._hold))
        try:
            self._process = await asyncio.shield(task)
        except asyncio.CancelledError:
            self._process = await task  # it is ended by `aclose`
            raise

    def __aiter__(self) -> PackStream:
        return self

    async def __anext__(self) -> bytes:
        if self._first:
            first, self._first = self._first, b""
            return first
        seconds_left = self._began + GRACE + self._sent / SLOWEST - time.monotonic()
        try:
            async with asyncio.timeout(min(SILENCE, seconds_left)):
                await asyncio.sleep(0)  # others have their turn where git and its reader are both fast
                piece = await self._read_piece()
        except TimeoutError:
            raise TooLong from None
        if not piece:
            await self.aclose()
            raise StopAsyncIteration
        self._sent += len(piece)
        return piece

    async def aclose(self) -> None:
        if self._closed:
            return
        self._closed = True
        ending = asyncio.ensure_future(process.in_start(self._end_process))
        ending.add_done_callback(lambda _: self._readers.leave(self._address))
        await asyncio.shield(ending)

    async def _read_piece(self) -> bytes:
        """The next bytes of the output; b"" at its end."""
        # Not `connect_read_pipe`: under uvloop the transport closes the descriptor, and then the file closes
        # it once more, when its number may be another's.
        assert self._process is not None  # noqa: S101  # it has begun
        assert self._process.stdout is not None  # noqa: S101  # a pipe
        descriptor = self._process.stdout.fileno()
        while True:
            try:
                return os.read(descriptor, PIECE)
            except BlockingIOError:
                await _wait_readable(descriptor)

    def _end_process(self) -> None:
        if self._process is not None:
            process.end(self._process)
            if self._process.stdout is not None:
                self._process.stdout.close()
        os.close(self._hold)


async def read(
    readers: Readers,
    address: str,
    cache: Cache,
    words: tuple[str, ...],
    *,
    body: bytes,
    protocol: str,
    first: bytes = b"",
) -> PackStream:
    """Start a git process that answers a reader, and return its output as a stream. `words`: arguments of
    git. `body`: the request that git answers. `first`: bytes to send before the output. `address`: the
    address of the reader. Raises Unavailable if too many readers are active."""
    await readers.enter(address)
    try:
        hold = cache.hold()
    except BaseException:
        readers.leave(address)
        raise
    stream = PackStream(readers, address, hold, first)
    try:
        if not cache.exists():
            raise Unavailable("this repository is made ready for git again; try again in a moment")
        await stream.begin((*words, str(cache.folder)), body, protocol)
    except BaseException:
        await stream.aclose()
        raise
    return stream


async def _wait_readable(descriptor: int) -> None:
    """Wait until the descriptor has bytes to read."""
    loop = asyncio.get_running_loop()
    ready = loop.create_future()

    def tell_ready() -> None:
        if not ready.done():
            ready.set_result(None)

    loop.add_reader(descriptor, tell_ready)
    try:
        await ready
    finally:
        loop.remove_reader(descriptor)


def _start(words: tuple[str, ...], body: bytes, protocol: str, hold: int) -> subprocess.Popen[bytes]:
    with tempfile.TemporaryFile() as stdin:
        stdin.write(body)
        stdin.seek(0)
        files: dict[str, Any] = {"stdin": stdin, "stdout": subprocess.PIPE, "bufsize": 0}
        started = process.start(*words, protocol=protocol, locks=(hold,), **files)
    assert started.stdout is not None  # noqa: S101  # a pipe
    os.set_blocking(started.stdout.fileno(), False)
    return started
