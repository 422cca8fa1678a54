"""Copies bytes between an SSH channel and the descriptors of a process, at the speed of the slower of
both."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from contextlib import suppress

READ_BYTES = 32 * 1024
WAITING_BYTES = 128 * 1024  # of input; then the client has to wait


class Output:
    """Reads what the process writes to the descriptor `fd`, and passes it to `write`. `pause` stops the
    reading until `resume` is called. `closed`: set when the output has ended; `fd` is then closed."""

    def __init__(self, fd: int, write: Callable[[bytes], None]) -> None:
        self._fd, self._write = fd, write
        self._loop = asyncio.get_running_loop()
        self.closed = asyncio.Event()
        os.set_blocking(fd, False)
        self._loop.add_reader(fd, self._read)

    def pause(self) -> None:
        if not self.closed.is_set():
            self._loop.remove_reader(self._fd)

    def resume(self) -> None:
        if not self.closed.is_set():
            self._loop.add_reader(self._fd, self._read)

    def close(self) -> None:
        if not self.closed.is_set():
            self._loop.remove_reader(self._fd)
            self.closed.set()
            os.close(self._fd)

    def _read(self) -> None:
        try:
            data = os.read(self._fd, READ_BYTES)
        except BlockingIOError:
            return
        except OSError:  # EIO: nobody has the terminal open any more
            data = b""
        if data:
            self._write(data)
        else:
            self.close()


class Input:
    """Writes the input that the client sends to the descriptor `fd`, and closes `fd` at the end. `full`:
    called when too much is waiting, so that the client must stop sending; `empty`: called when it may go
    on."""

    def __init__(self, fd: int, full: Callable[[], None], empty: Callable[[], None]) -> None:
        self._fd, self._full, self._empty = fd, full, empty
        self._loop = asyncio.get_running_loop()
        self._waiting = bytearray()
        self._writes = self._ends = False
        self._closed = False
        os.set_blocking(fd, False)

    def feed(self, data: bytes) -> None:
        if self._closed:
            return
        before = len(self._waiting)
        self._waiting += data
        if not self._writes:
            self._flush()
        if before < WAITING_BYTES <= len(self._waiting):
            self._full()

    def end(self) -> None:
        """Close `fd` once the waiting input is written."""
        self._ends = True
        if not self._waiting:
            self.close()

    def close(self) -> None:
        if self._closed:
            return
        self._closed = True
        if self._writes:
            self._loop.remove_writer(self._fd)
        os.close(self._fd)

    def _flush(self) -> None:
        was_full = len(self._waiting) >= WAITING_BYTES
        try:
            while self._waiting:
                del self._waiting[: os.write(self._fd, self._waiting[:READ_BYTES])]
        except BlockingIOError:
            if not self._writes:
                self._writes = True
                self._loop.add_writer(self._fd, self._flush)
        except OSError:  # the process is gone
            self._waiting.clear()
            self.close()
            return
        if was_full and len(self._waiting) < WAITING_BYTES:
            self._empty()
        if not self._waiting:
            if self._writes:
                self._writes = False
                self._loop.remove_writer(self._fd)
            if self._ends:
                with suppress(OSError):
                    self.close()
