"""Text lanes in memory: loaded from genesis and log when needed, the least used ones forgotten.

All lanes belong to one thread, so that no CRDT work blocks the event loop and no two calls meet in one lane.
Decisions about updates run on that thread as a whole (`run`); inside it they `open`, change and `keep` lanes.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple, ParamSpec, TypeVar

from localstore.core.lane import Lane
from localstore.core.limits import MIB

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
    """What a lane is made of: its genesis text and the operations since, in order."""

    genesis: bytes
    operations: list[bytes]

    def build(self, key: LaneKey) -> Lane:
        lane = Lane.genesis(*key, self.genesis)
        lane.replay(self.operations)
        return lane


class LaneSourceMissing(Exception):
    """A lane is not in memory and what it is made of was not loaded; nothing was changed."""


class Verdicts:
    """Digests of objects known to be text, the newest ones."""

    def __init__(self, most: int = VERDICTS) -> None:
        self._most = most
        self._known: OrderedDict[bytes, None] = OrderedDict()

    def add(self, digests: Iterable[bytes]) -> None:
        self._known.update(dict.fromkeys(digests))
        while len(self._known) > self._most:
            self._known.popitem(last=False)

    def among(self, digests: Iterable[bytes]) -> set[bytes]:
        return {digest for digest in digests if digest in self._known}


class Lanes:
    """Lanes by key, each with where it stands. `capacity`: bytes of text."""

    def __init__(self, capacity: int = CAPACITY) -> None:
        self._capacity = capacity
        self._kept: OrderedDict[LaneKey, tuple[Stand, Lane, int]] = OrderedDict()
        self._weight = 0
        self.texts = Verdicts()
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="lanes")

    async def run(self, work: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
        """`work` on the lanes' thread."""
        return await asyncio.get_running_loop().run_in_executor(self._thread, lambda: work(*args, **kwargs))

    def holds(self, key: LaneKey, stand: Stand) -> bool:
        """A hint, from any thread, whether `open` will do without a source."""
        kept = self._kept.get(key)
        return kept is not None and kept[0] == stand

    def open(self, key: LaneKey, stand: Stand) -> Lane | None:
        kept = self._kept.get(key)
        if kept is None or kept[0] != stand:
            return None
        self._kept.move_to_end(key)
        return kept[1]

    def find(self, key: LaneKey, stand: Stand, sources: Mapping[LaneKey, Source]) -> Lane:
        """The lane in memory, or made of its source for this call alone. LaneSourceMissing without either."""
        lane = self.open(key, stand)
        if lane is not None:
            return lane
        if key not in sources:
            raise LaneSourceMissing
        return sources[key].build(key)

    def keep(self, key: LaneKey, stand: Stand, lane: Lane, size: int) -> None:
        """`size`: bytes of its text."""
        before, weight = self._kept.get(key), size + OVERHEAD
        self._kept[key] = (stand, lane, weight)
        self._kept.move_to_end(key)
        self._weight += weight - (before[2] if before else 0)
        while self._weight > self._capacity:
            self.drop([next(iter(self._kept))])

    def forget(self, keys: Iterable[LaneKey]) -> None:
        """`drop` from another thread, in its turn: behind work that may still run for a cancelled request."""
        self._thread.submit(self.drop, list(keys))

    def drop(self, keys: Iterable[LaneKey]) -> None:
        """Forget lanes: their transaction did not commit, or they are no more."""
        for key in keys:
            kept = self._kept.pop(key, None)
            if kept is not None:
                self._weight -= kept[2]

    def close(self) -> None:
        self._thread.shutdown()
        self._kept.clear()
