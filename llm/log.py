"""The server's log, which gets the output of all its processes."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from localstore.models import log


class Log(log.Log):
    """A log whose lines are also written to the file descriptor `echo`, unless that is None."""

    def __init__(self, file: Path, echo: int | None = None) -> None:
        super().__init__(file)
        self._echo = echo

    def write(self, data: bytes) -> None:
        if self._echo is not None:
            with suppress(OSError):  # the terminal has gone
                os.write(self._echo, data)
        super().write(data)
