"""A log file for the output of processes; it is renamed when it becomes large."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

LOG_BYTES = 4 << 20
_PIECE = 1 << 16
_TAIL_BYTES = 64 << 10
_FOLLOW = 0.3


class Log:
    """Copies the output of pipes into the log until the pipes close. Several threads may write to one Log.
    Never open two Logs on one file, because each would rename the file while the other writes."""

    def __init__(self, file: Path) -> None:
        self._file, self._lock = file, threading.Lock()
        file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._out = self._open()

    def copy(self, source: int) -> None:
        while data := os.read(source, _PIECE):
            self.write(data)
        os.close(source)

    def write(self, data: bytes) -> None:
        with self._lock, suppress(OSError):  # a full disk ends no server, and no app
            os.write(self._out, data)
            if os.fstat(self._out).st_size > LOG_BYTES:
                with suppress(FileNotFoundError):  # renamed before, and the new one could not be opened
                    self._file.replace(self._file.with_name(f"{self._file.name}.1"))
                full, self._out = self._out, self._open()
                os.close(full)  # only now: if the open fails, its number must not become another file's

    def _open(self) -> int:
        return os.open(self._file, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)


def tail(file: Path, lines: int) -> str:
    """The last lines of a log."""
    try:
        with file.open("rb") as log:
            log.seek(max(0, os.fstat(log.fileno()).st_size - _TAIL_BYTES))
            text = log.read().decode("utf-8", "replace")
    except (FileNotFoundError, NotADirectoryError):
        return ""
    return "\n".join(text.splitlines()[-lines:])


def follow(file: Path) -> Iterator[str]:
    """Yields the lines that are written to a log from now on. It never ends."""
    at = 0
    with suppress(FileNotFoundError):
        at = file.stat().st_size
    while True:
        time.sleep(_FOLLOW)
        with suppress(FileNotFoundError), file.open("rb") as log:
            length = os.fstat(log.fileno()).st_size
            if length < at:
                at = 0  # it was renamed, and begins again
            log.seek(at)
            text = log.read(_TAIL_BYTES)
            at += len(text)
            if text:
                yield text.decode("utf-8", "replace")
