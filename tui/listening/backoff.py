"""Waits between failing attempts, each about double the one before."""

from __future__ import annotations

import secrets
import threading

FIRST, LONGEST = 0.5, 30.0  # seconds


class Backoff:
    """Computes and waits the pause before the next attempt. Call `failed` or `worked` after an attempt, then
    `wait`."""

    def __init__(self) -> None:
        self._seconds = FIRST

    def failed(self) -> None:
        self._seconds = min(LONGEST, self._seconds * 2)

    def worked(self) -> None:
        self._seconds = FIRST

    def wait(self, ended: threading.Event) -> None:
        """Wait until the next attempt, or until `ended` is set. The time is randomised, so that clients do
        not coincide."""
        ended.wait(self._seconds * secrets.SystemRandom().uniform(0.8, 1.2))
