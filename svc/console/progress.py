"""The progress line on stderr: a bar with the rate and the time left. It is shown on a terminal only."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TextIO

from localstore.core.paths import terminal_safe
from svc.console.table import size

TICK = 0.1  # seconds between two paintings
BAR_CELLS = 20
FIRST_ESTIMATE = 1.0  # seconds after which the time left is worth telling


class Meter:
    """The progress line of one command, as a `localstore.progress.Progress`. Prints nothing unless `live` is
    True."""

    def __init__(self, stream: TextIO, *, live: bool, clock: Callable[[], float] = time.monotonic) -> None:
        self._stream, self._live, self._clock = stream, live, clock
        self._phase = ""
        self._begun: dict[str, float] = {}  # phase → when it first came; phases may alternate
        self._started, self._painted, self._is_shown = 0.0, 0.0, False

    def __call__(self, phase: str, done: int, total: int | None, bytes: int = 0) -> None:
        if not self._live:
            return
        now = self._clock()
        if phase != self._phase:
            self._phase, self._painted = phase, now - TICK
            self._started = self._begun.setdefault(phase, now)
        if now - self._painted >= TICK or done == total:
            self._painted = now
            self._stream.write(f"\r{self.line(done, total, bytes)}\x1b[K")
            self._stream.flush()
            self._is_shown = True

    def line(self, done: int, total: int | None, bytes: int) -> str:
        """Return the text of the line, such as `sending [###...] 3 of 6 1.5 MiB 3 s left`. `done` and `total`
        are numbers of steps, and `bytes` is the number of bytes moved so far."""
        spent = max(self._clock() - self._started, 1e-9)
        parts = [terminal_safe(self._phase)]
        if total:
            filled = round(min(done / total, 1.0) * BAR_CELLS)
            parts += [f"[{'#' * filled}{'.' * (BAR_CELLS - filled)}]", f"{done} of {total}"]
        else:
            parts.append(str(done))
        if bytes:
            parts += [size(bytes)] + ([f"{size(bytes / spent)}/s"] if spent >= TICK else [])
        if total and 0 < done < total and spent >= FIRST_ESTIMATE:
            parts.append(f"{spent * (total - done) / done:.0f} s left")
        return "  ".join(parts)

    def clear(self) -> None:
        """Erase the progress line, so that other text can be printed."""
        if self._is_shown:
            self._stream.write("\r\x1b[K")
            self._stream.flush()
            self._is_shown = False
