"""Decides when a write to a file counts as a save. Times are seconds of the monotonic clock.

If a program closes a file that it wrote, or renames a file into place, the file is saved. A write without a
close may be incomplete, so it waits. A file that just became empty waits too. A file that vanished may
reappear, because many programs save by moving the old file away first."""

from __future__ import annotations

from collections.abc import Callable

BURST = 25  # removed files that are judged together, as one removal
QUIET, LONGEST = 0.5, 30.0  # seconds after the last of them; after the first
WRITING = 0.05  # delay after a write without close, and for a file that just became empty
VANISHED = 0.25


class Saves:
    """Saved paths whose edits are not captured yet. `below`: folders (with a trailing slash; "" for the root)
    in which anything may have changed, at any depth."""

    def __init__(self) -> None:
        self._due: dict[str, float] = {}
        self._below: dict[str, float] = {}
        self._waited: set[str] = set()
        self._gone: set[str] = set()
        self._gone_first = self._gone_last = 0.0

    def __bool__(self) -> bool:
        return bool(self._due or self._below)

    def record_closed(self, path: str, now: float) -> None:
        """Record that the file was closed after writing, or renamed to this name."""
        self._due[path] = now
        self._gone.discard(path)

    def record_written(self, path: str, now: float) -> None:
        """Record that the file was written or created."""
        self._due[path] = now + WRITING
        self._gone.discard(path)

    def record_vanished(self, path: str, now: float) -> None:
        """Record that the file was removed."""
        self._due[path] = now + VANISHED
        self._gone_first = now if not self._gone else self._gone_first
        self._gone_last = now
        self._gone.add(path)

    def record_changed_below(self, prefix: str, now: float) -> None:
        """Record that a folder appeared or vanished, or its rules changed."""
        self._below.setdefault(prefix, now + VANISHED)

    def next_due(self) -> float | None:
        """The time at which the next of the recorded writes and removals counts as a save. None if nothing
        waits."""
        if len(self._gone) < BURST:
            return min([*self._due.values(), *self._below.values()], default=None)
        others = (due for path, due in self._due.items() if path not in self._gone)
        return min([*others, self._burst_over()], default=None)

    def _burst_over(self) -> float:
        """The time at which a removal of many files counts as complete, because no more files have been
        removed for a while."""
        return min(self._gone_last + QUIET, self._gone_first + LONGEST)

    def pop_due(self, now: float, is_empty: Callable[[str], bool], most: int) -> tuple[list[str], set[str]]:
        """Remove the saves that count by now, and return (paths of files, folders below which anything may
        have changed). A file that has just become empty (`is_empty`) waits once. At most `most` paths are
        returned, except when many files were removed: these removals wait until no more follow, and are then
        returned together. Changed folders wait with them."""
        burst = len(self._gone) >= BURST
        waits = burst and now < self._burst_over()
        taken: list[str] = []
        for path, due in list(self._due.items()):
            whole = burst and path in self._gone
            if due > now or (whole and waits) or (not whole and len(taken) >= most):
                continue
            del self._due[path]
            self._gone.discard(path)
            taken.append(path)
        ready = []
        for path in taken:
            if path not in self._waited and is_empty(path):
                self._waited.add(path)
                self._due[path] = now + WRITING
            else:
                self._waited.discard(path)
                ready.append(path)
        below = {prefix for prefix, due in self._below.items() if due <= now and not waits}
        for prefix in below:
            del self._below[prefix]
        return ready, below
