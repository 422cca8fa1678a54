"""A cache of text lanes. A lane is loaded from its genesis and log. The least recently used lanes are
dropped.

The cache belongs to the event loop. Work on a lane, on any thread, borrows it. The lane leaves the cache, and
returns after the commit of the transaction that used it.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import NamedTuple, ParamSpec, TypeVar

from localstore.core.lane.lane import Lane
from localstore.core.model.limits import MIB
from relay.base.locks import Locks

P = ParamSpec("P")
R = TypeVar("R")
CAPACITY = 64 * MIB
OVERHEAD = 4096  # bytes of an empty document, about
VERDICTS = 100_000


# `ver` and `digest` of a lane's row. Read in the transaction that relies on the lane, they tell a lane that
# another process has changed since, or that a failed transaction left behind.
Stand = tuple[int, bytes]


class LaneKey(NamedTuple):
    branch_id: str
    gen: int
    epoch: int


class Source(NamedTuple):
    """The data from which a lane is built: its genesis text and the later operations, in order."""

    genesis: bytes
    operations: list[bytes]

    def build(self, key: LaneKey) -> Lane:
        lane = Lane.genesis(*key, self.genesis)
        lane.replay(self.operations)
        return lane


@dataclass(slots=True)
class Desk:
    """The CRDT texts (lanes) that one piece of work needs. `lanes`: those borrowed from the cache. `sources`:
    for each of the others, the data from which it is built."""

    lanes: dict[LaneKey, Lane]
    sources: dict[LaneKey, Source]

    def find(self, key: LaneKey) -> Lane:
        """The lane with this key. A lane that was not in the cache is built from its source, for this call
        only."""
        return self.lanes.get(key) or self.sources[key].build(key)


class KnownTexts:
    """The digests of objects that are known to be text. The oldest are dropped."""

    def __init__(self, most: int = VERDICTS) -> None:
        self._most = most
        self._digests: OrderedDict[bytes, None] = OrderedDict()

    def add(self, digests: Iterable[bytes]) -> None:
        self._digests.update(dict.fromkeys(digests))
        while len(self._digests) > self._most:
            self._digests.popitem(last=False)

    def among(self, digests: Iterable[bytes]) -> set[bytes]:
        return {digest for digest in digests if digest in self._digests}


class Lanes:
    """A cache of CRDT texts (lanes) by key. Each is stored with its version: the columns `ver` and `digest`
    of its row. `capacity`: bytes of text that the cache may hold."""

    def __init__(self, capacity: int = CAPACITY) -> None:
        self._capacity = capacity
        self._lanes: OrderedDict[LaneKey, tuple[Stand, Lane, int]] = OrderedDict()
        self._weight = 0
        self.texts = KnownTexts()
        self._turns: Locks[str] = Locks()
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="lanes")

    def turn(self, branch_id: str) -> AbstractAsyncContextManager[None]:
        """A lock for one branch. With it, writers of the branch compute their results one after another, so
        that none computes from a state that another writer is changing."""
        return self._turns.of(branch_id)

    async def run(self, work: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
        """Run `work` on the one thread that computes lanes, and return its result. For a transaction that
        waits for this result."""
        return await asyncio.get_running_loop().run_in_executor(self._thread, lambda: work(*args, **kwargs))

    def peek(self, key: LaneKey, stand: Stand) -> Lane | None:
        """The lane if the cache has it at the version `stand`, otherwise None. Use it only on the event loop,
        to read the lane at once."""
        cached = self._lanes.get(key)
        return cached[1] if cached is not None and cached[0] == stand else None

    def borrow(self, key: LaneKey, stand: Stand) -> Lane | None:
        """Take the lane out of the cache until `keep` or `give_back` is called. Returns None if the cache
        does not have it at the version `stand`."""
        lane = self.peek(key, stand)
        if lane is not None:
            self.forget([key])
        return lane

    def give_back(self, key: LaneKey, stand: Stand, lane: Lane, size: int) -> None:
        """Put back into the cache a borrowed lane that was only read. Does nothing if the cache has got
        another version of the lane meanwhile."""
        if key not in self._lanes:
            self.keep(key, stand, lane, size)

    def keep(self, key: LaneKey, stand: Stand, lane: Lane, size: int) -> None:
        """Put a lane into the cache, at the version `stand`. `size`: bytes of its text."""
        before, weight = self._lanes.get(key), size + OVERHEAD
        self._lanes[key] = (stand, lane, weight)
        self._lanes.move_to_end(key)
        self._weight += weight - (before[2] if before else 0)
        while self._weight > self._capacity:
            self.forget([next(iter(self._lanes))])

    def forget(self, keys: Iterable[LaneKey]) -> None:
        for key in keys:
            cached = self._lanes.pop(key, None)
            if cached is not None:
                self._weight -= cached[2]

    def close(self) -> None:
        self._thread.shutdown()
        self._lanes.clear()
