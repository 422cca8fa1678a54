"""Tells the user that a command is waiting for the server."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Timer

SLOW = 8.0  # seconds without an answer


class Slow:
    """Calls `say` once, from another thread, when an answer takes longer than SLOW seconds."""

    def __init__(self, origin: str, say: Callable[[str], None]) -> None:
        self._origin, self._say = origin, say
        self._notified = False

    @contextmanager
    def waiting(self) -> Iterator[None]:
        """A context that waits for one answer. If that takes too long, `say` is called."""
        if self._notified:
            yield
            return
        timer = Timer(SLOW, self._tell)
        timer.daemon = True
        timer.start()
        try:
            yield
        finally:
            timer.cancel()

    def _tell(self) -> None:
        if not self._notified:
            self._notified = True
            self._say(
                f"svc: {self._origin} has not answered for {SLOW:g} s; still waiting while it works "
                "(Ctrl-C ends it)"
            )
