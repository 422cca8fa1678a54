"""Rate limits: a token bucket for each address and each account, and strict limits for routes where secrets
can be guessed.

The ordinary buckets are large: a push of ten thousand files does not exhaust them; a crawler or a loop does.
"""

from __future__ import annotations

import math
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

from localstore.core.errors import RateLimited

REMEMBERED = 100_000  # buckets; the least recently used are dropped


@dataclass(frozen=True, slots=True)
class Rate:
    """A rate limit: `burst` tokens at most, refilled at `per_second`."""

    burst: float
    per_second: float


ORDINARY = Rate(burst=30_000, per_second=500)
SOCKET = Rate(burst=2000, per_second=100)  # frames from the clients of one session
SOCKETS = Rate(burst=8000, per_second=400)  # and of one address
SUBSCRIBE = 8  # frames that subscribing counts as: it asks the database


@dataclass(slots=True)
class _Bucket:
    tokens: float
    at: float


class Limiter:
    """The token buckets, in the memory of this process. `clock`: returns seconds and never goes back.
    `enabled`: if False (TR_RATE_LIMITS), nothing is limited; limits that are counted in the database, such as
    that on comments, are then off too."""

    def __init__(self, enabled: bool = True, clock: Callable[[], float] = time.monotonic) -> None:
        self.enabled = enabled
        self._clock = clock
        self._buckets: OrderedDict[str, _Bucket] = OrderedDict()

    def admit(self, address: str, cost: int, route: str, per_minute: int | None) -> None:
        """Count a request that costs `cost` tokens against its address. `route`: the name of its route, which
        an address may ask `per_minute` times a minute, if that is given. Called before anything else of the
        request is read. Raises RateLimited."""
        if not self.enabled:
            return
        self.spend(f"address {address}", ORDINARY, cost)
        if per_minute is not None:
            self.spend(f"{route} {address}", Rate(burst=per_minute, per_second=per_minute / 60), 1)

    def admit_account(self, account_id: str, cost: int) -> None:
        """Count a request against its account, which may use many addresses. Raises RateLimited."""
        if self.enabled:
            self.spend(f"account {account_id}", ORDINARY, cost)

    def admit_message(self, address: str, account_id: str) -> None:
        """Count a socket message that does the work of a request, against its address and its account. Raises
        RateLimited."""
        self.spend(f"address {address}", ORDINARY, 1)
        self.spend(f"account {account_id}", ORDINARY, 1)

    def spend(self, key: str, rate: Rate, cost: float) -> None:
        """Take `cost` tokens from the bucket `key`. Raises RateLimited if the bucket has too few, and names
        the seconds until it has enough."""
        if not self.enabled:
            return
        bucket = self._refill(key, rate)
        if bucket.tokens < cost:
            wait = max(1, math.ceil((cost - bucket.tokens) / rate.per_second))
            window = math.ceil(rate.burst / rate.per_second)
            raise RateLimited(f"too many requests; try again in {wait} s", wait, int(rate.burst), window)
        bucket.tokens -= cost

    def _refill(self, key: str, rate: Rate) -> _Bucket:
        """Add to the bucket the tokens for the time since its last use. Returns the bucket."""
        now = self._clock()
        bucket = self._buckets.get(key)
        if bucket is None:
            bucket = self._buckets[key] = _Bucket(rate.burst, now)
            if len(self._buckets) > REMEMBERED:
                self._buckets.popitem(last=False)
        else:
            self._buckets.move_to_end(key)
        bucket.tokens = min(rate.burst, bucket.tokens + (now - bucket.at) * rate.per_second)
        bucket.at = now
        return bucket

    def debt(self, key: str, rate: Rate, cost: float) -> float:
        """Take `cost` tokens from the bucket `key`, even if it has fewer and so becomes negative. Returns the
        seconds until it is no longer negative. For callers that can be made to wait."""
        if not self.enabled:
            return 0.0
        bucket = self._refill(key, rate)
        bucket.tokens -= cost
        return max(0.0, -bucket.tokens / rate.per_second)

    def frames(self, session_id: str, address: str, count: int) -> float:
        """Count WebSocket frames that a client has sent. Returns how many seconds its socket has to wait
        before it reads more."""
        mine = self.debt(f"socket {session_id}", SOCKET, count)
        return max(mine, self.debt(f"sockets {address}", SOCKETS, count))

    def give_back(self, key: str, cost: float = 1) -> None:
        """Put `cost` tokens back into the bucket `key`, because an attempt succeeded and only failures
        count."""
        bucket = self._buckets.get(key)
        if bucket is not None:
            bucket.tokens += cost


class Attempts:
    """A limit for attempts to guess a secret. `most`: how many attempts are allowed at once. `seconds`: how
    long it takes until `most` are allowed again. `what`: a name for the attempts, for
    docs/reference/limits.md."""

    ALL: ClassVar[dict[str, Attempts]] = {}

    def __init__(self, name: str, most: int, seconds: int, what: str) -> None:
        self.name, self.most, self.seconds, self.what = name, most, seconds, what
        self._rate = Rate(burst=most, per_second=most / seconds)
        self.ALL[name] = self

    def count(self, limiter: Limiter, key: str) -> None:
        """Count an attempt against `key`. Called before the attempt, so that concurrent attempts are counted
        too. Raises RateLimited."""
        limiter.spend(f"{self.name} {key}", self._rate, 1)

    def give_back(self, limiter: Limiter, key: str) -> None:
        """Do not count an attempt after all, because it succeeded and only failed attempts count."""
        limiter.give_back(f"{self.name} {key}")
