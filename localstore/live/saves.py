"""Decides when a save counts. Times are seconds of the monotonic clock.

A program that closes a file it wrote, or renames one into place, has saved it. A write without a close may be
incomplete and waits, as does a file that just became empty. A file that vanished may reappear: many programs
save by moving the old file away first.
"""

from __future__ import annotations

from collections.abc import Callable

WRITING = 0.05  # delay after a write without close, and for a file that just became empty
VANISHED = 0.25


class Saves:
    """Saved paths that are not captured yet. `below`: folders (with a trailing slash; the root is empty)
    below which anything may have changed."""

    def __init__(self) -> None:
        self._due: dict[str, float] = {}
        self._below: dict[str, float] = {}
        self._waited: set[str] = set()

    def __bool__(self) -> bool:
        return bool(self._due or self._below)

    def closed(self, path: str, now: float) -> None:
        """The file was written and closed, or renamed to this name."""
        self._due[path] = now

    def written(self, path: str, now: float) -> None:
        """The file was written, or created."""
        self._due[path] = now + WRITING

    def vanished(self, path: str, now: float) -> None:
        """The file was removed."""
        self._due[path] = now + VANISHED

    def changed_below(self, prefix: str, now: float) -> None:
        """A folder appeared or vanished, or its rules changed."""
        self._below.setdefault(prefix, now + VANISHED)

    def next_due(self) -> float | None:
        """When the next save counts; None if there is none."""
        return min([*self._due.values(), *self._below.values()], default=None)

    def pop_due(self, now: float, is_empty: Callable[[str], bool], most: int) -> tuple[list[str], set[str]]:
        """Remove and return the saves that count now, at most `most` paths, and folders. A file that
        `is_empty` (and was not before) waits once."""
        taken: list[str] = []
        for path, due in list(self._due.items()):
            if due > now:
                continue
            if len(taken) == most:
                break
            del self._due[path]
            taken.append(path)
        ready = []
        for path in taken:
            if path not in self._waited and is_empty(path):
                self._waited.add(path)
                self._due[path] = now + WRITING
            else:
                self._waited.discard(path)
                ready.append(path)
        below = {prefix for prefix, due in self._below.items() if due <= now}
        for prefix in below:
            del self._below[prefix]
        return ready, below
