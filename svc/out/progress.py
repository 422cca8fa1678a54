"""Progress on stderr: a bar with rate and time left, only where a person watches."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TextIO

from localstore.core.paths import terminal_safe
from svc.out.table import size

TICK = 0.1  # seconds between two paintings
BAR_CELLS = 20


class Meter:
    """The progress of one command, step after step. Silent when `live` is false."""

    def __init__(self, stream: TextIO, *, live: bool, clock: Callable[[], float] = time.monotonic) -> None:
        self._stream, self._live, self._clock = stream, live, clock
        self._label, self._unit = "", "files"
        self._total: int | None = None
        self._done, self._started, self._painted, self._shown = 0, 0.0, 0.0, False

    def start(self, label: str, total: int | None = None, unit: str = "files") -> None:
        """Begin a step. `total` in `unit` ("bytes" is shown in KiB, MiB…); None when nobody knows."""
        self.finish()
        self._label, self._total, self._unit = terminal_safe(label), total, unit
        self._done, self._started, self._painted = 0, self._clock(), 0.0

    def advance(self, count: int = 1) -> None:
        self._done += count
        now = self._clock()
        if self._live and self._label and now - self._painted >= TICK:
            self._painted = now
            self._paint(now)

    def finish(self) -> None:
        """End the step and clear its line."""
        if self._shown:
            self._stream.write("\r\x1b[K")
            self._stream.flush()
            self._shown = False
        self._label = ""

    def line(self, now: float) -> str:
        """What is painted: `Sending  [#####.....] 3.0/6.0 MiB  1.2 MiB/s  3 s left`."""
        spent = max(now - self._started, 1e-9)
        rate = self._done / spent
        parts = [self._label]
        if self._total:
            share = min(self._done / self._total, 1.0)
            filled = round(share * BAR_CELLS)
            parts.append(f"[{'#' * filled}{'.' * (BAR_CELLS - filled)}]")
            parts.append(f"{self._amount(self._done)} of {self._amount(self._total)}")
        else:
            parts.append(self._amount(self._done))
        parts.append(f"{self._amount(rate)}/s")
        if self._total and rate > 0:
            parts.append(f"{max(self._total - self._done, 0) / rate:.0f} s left")
        return "  ".join(parts)

    def _amount(self, count: float) -> str:
        return size(count) if self._unit == "bytes" else f"{count:.0f}"

    def _paint(self, now: float) -> None:
        self._stream.write(f"\r{self.line(now)}\x1b[K")
        self._stream.flush()
        self._shown = True
