"""The server's log: what its processes print."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from localstore.models import log


class Log(log.Log):
    """A log whose lines can be shown on a terminal too."""

    def __init__(self, file: Path, shown: int | None = None) -> None:
        super().__init__(file)
        self._shown = shown

    def write(self, data: bytes) -> None:
        if self._shown is not None:
            with suppress(OSError):  # the terminal has gone
                os.write(self._shown, data)
        super().write(data)
