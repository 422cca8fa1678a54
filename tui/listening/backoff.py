"""Waits between failed attempts. Each wait is about twice as long as the one before."""

from __future__ import annotations

import secrets
import threading

FIRST, LONGEST = 0.5, 30.0  # seconds


class Backoff:
    """Computes the pause before the next attempt, and waits for it. Call `lengthen` after an attempt that
    failed or `reset` after one that worked, and then `wait`."""

    def __init__(self) -> None:
        self._seconds = FIRST

    def lengthen(self) -> None:
        self._seconds = min(LONGEST, self._seconds * 2)

    def reset(self) -> None:
        self._seconds = FIRST

    def wait(self, ended: threading.Event, longest: float = LONGEST) -> None:
        """Wait until the next attempt is due, at most about `longest` seconds, or until `ended` is set. The
        time is randomised, so that clients do not all try at the same moment."""
        ended.wait(min(longest, self._seconds) * secrets.SystemRandom().uniform(0.8, 1.2))
