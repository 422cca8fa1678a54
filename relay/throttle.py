"""Counting attempts, so that nobody guesses passwords or codes for long.

Counts live in this process: with several workers each allows its own share.
"""

from __future__ import annotations

import time
from collections import OrderedDict, deque
from collections.abc import Callable
from dataclasses import dataclass

from localstore.core.errors import RateLimited

_KEYS_MAX = 50_000


@dataclass(frozen=True, slots=True)
class Rate:
    """At most `attempts` in any `seconds`. `name` separates what is counted."""

    name: str
    attempts: int
    seconds: int


class Throttle:
    """A sliding window for each (rate, key); the least recently used keys are forgotten first."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._seen: OrderedDict[tuple[str, str], deque[float]] = OrderedDict()

    def take(self, rate: Rate, key: str) -> None:
        """Count one attempt, before it is made: a flood of concurrent attempts is counted too.
        Raises RateLimited once the window is full."""
        now = self._clock()
        seen = self._seen.setdefault((rate.name, key), deque())
        self._seen.move_to_end((rate.name, key))
        while seen and seen[0] <= now - rate.seconds:
            seen.popleft()
        if len(seen) >= rate.attempts:
            wait = int(seen[0] + rate.seconds - now) + 1
            raise RateLimited(f"too many attempts; wait {wait} seconds and try again", retry_after=wait)
        seen.append(now)
        while len(self._seen) > _KEYS_MAX:
            self._seen.popitem(last=False)

    def give_back(self, rate: Rate, key: str) -> None:
        """The attempt was good and does not count."""
        seen = self._seen.get((rate.name, key))
        if seen:
            seen.pop()
