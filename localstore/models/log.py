"""A log of what processes print, in a file that is renamed once it is large."""

from __future__ import annotations

import os
import threading
from contextlib import suppress
from pathlib import Path

LOG_BYTES = 4 << 20
_PIECE = 1 << 16


class Log:
    """Copies pipes into the log until they close. Several threads may write; two logs of one file would
    rename it under each other."""

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
