"""Reads and changes trees without holding up the event loop."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Collection, Iterable, Iterator, Mapping
from contextvars import ContextVar
from functools import partial
from types import MappingProxyType
from typing import TypeVar

from localstore.core import tree
from localstore.core.model.limits import KIB
from localstore.core.tree.drive import Known, Objects, Steps
from relay.base.recent import Recent
from relay.db.engine.database import Tx
from relay.objects.store import ObjectStore

T = TypeVar("T")
LARGE = 64 * KIB  # bytes of directories that are gone through on a thread; they take about two milliseconds
ENTRY = 50  # bytes of a child or hidden entry, about
MANY = 256  # paths looked for or changed, likewise
COUNTED = 50_000  # directories whose number of files is kept
CHILDREN = 100_000  # of decoded directories that are kept: about 20 MB
_NONE: Mapping[str, bytes] = MappingProxyType({})
Load = Callable[[list[bytes]], Awaitable[Objects]]


def _entries(directory: tree.Directory) -> int:
    return len(directory.children) + len(directory.hidden)


class FileCounts:
    """A cache that knows, for directories by digest, how many files are below them. The least recently used
    are dropped."""

    def __init__(self, most: int = COUNTED) -> None:
        self._most = most
        self._counts: OrderedDict[bytes, int] = OrderedDict()

    def learn(self, root: bytes, files: int) -> None:
        self._keep({root: files})

    async def count(self, load: Load, roots: Collection[bytes]) -> Mapping[bytes, int]:
        """Count the files below each of these directories. Returns the numbers by digest."""
        counted = {root: self._counts[root] for root in roots if root in self._counts}
        counted[tree.EMPTY_ROOT] = 0
        if not all(root in counted for root in roots):
            counts = await drive(tree.count(roots, dict(self._counts)), load)
            self._keep(counts)
            counted |= counts
        return counted

    def _keep(self, counts: Mapping[bytes, int]) -> None:
        for digest, files in counts.items():
            self._counts[digest] = files
            self._counts.move_to_end(digest)
        while len(self._counts) > self._most:
            self._counts.popitem(last=False)


class Directories(Recent[bytes, tree.Directory]):
    """A cache of decoded directories of trees, by digest. `most`: the highest number of entries in all cached
    directories together."""

    def __init__(self, most: int = CHILDREN) -> None:
        super().__init__(most, _entries)

    def among(self, digests: Iterable[bytes]) -> Known:
        """Those of the directories `digests` that are in the cache."""
        pairs = ((digest, self.get(digest)) for digest in digests)
        return {digest: directory for digest, directory in pairs if directory is not None}

    def learn(self, directories: Known) -> None:
        for digest, directory in directories.items():
            self.put(digest, directory)


class Work:
    """Counts the CPU seconds that are used to read and change trees; see `work_on_trees`."""

    def __init__(self) -> None:
        self.seconds = 0.0


_WORK: ContextVar[Work | None] = ContextVar("work on trees", default=None)


@contextlib.contextmanager
def work_on_trees() -> Iterator[Work]:
    """A context that yields a counter of the CPU seconds that `drive` uses inside it, on threads too."""
    before = _WORK.set(work := Work())
    try:
        yield work
    finally:
        _WORK.reset(before)


async def drive(
    steps: Steps[T],
    load: Load,
    paths: int = 0,
    cached: Known | None = None,
    directories: Directories | None = None,
) -> T:
    """Run the generator `steps` and return its result. The generator yields digests of directories and is
    sent the directories, which `load` reads. Its steps run on a thread if the directories are large or there
    are many `paths` to change.

    `cached`: directories that `steps` has already. `directories`: a cache. What this cache has is added to
    `cached` instead of being loaded, so `cached` must be given too.
    """
    sent: Objects | None = None
    while True:
        if paths > MANY or _bytes_of(sent, cached) > LARGE:
            digests, result = await asyncio.to_thread(_step, steps, sent)
        else:
            digests, result = _step(steps, sent)
        if digests is None:
            return result[0]
        if directories is not None and cached is not None:
            cached.update(directories.among(digests))
            digests = [digest for digest in digests if digest not in cached]
        sent = await load(digests) if digests else {}


async def update(
    root: bytes | None,
    changes: Mapping[str, tree.TreeEntry | None],
    key: bytes,
    load: Load,
    cached: Known | None = None,
    alike: Mapping[str, bytes] = _NONE,
    directories: Directories | None = None,
) -> tree.Built:
    """Change a tree and return the new tree, whose digests are salted with `key`. If the old tree has another
    key, it is rebuilt completely, which takes a few µs for each of its files. `cached` and `alike`: as for
    `localstore.core.tree.update`. `directories`: as for `drive`."""
    if root is not None and root != tree.EMPTY_ROOT:
        top = cached.get(root) if cached else None
        if top is None and directories is not None:
            top = directories.among([root]).get(root)
        if top is None:
            top = tree.decode((await load([root]))[root])
        large = len(top.children) > MANY
        own = (
            await asyncio.to_thread(tree.salted_with, top, root, key)
            if large
            else tree.salted_with(top, root, key)
        )
        if not own:
            return await drive(tree.rebuild(root, changes, key), load, MANY + 1)
    return await drive(
        tree.update(root, changes, key, cached, alike), load, len(changes), cached, directories
    )


def _bytes_of(sent: Objects | None, cached: Known | None) -> int:
    """The approximate size of the directories that the generator may visit before it yields again."""
    entries = sum(map(_entries, (cached or {}).values()))
    return entries * ENTRY + sum(map(len, (sent or {}).values()))


def loader_of(objects: ObjectStore, tx: Tx) -> Load:
    """Make a function that loads directories of any repository by digest, as `tx` sees them."""
    return partial(objects.read_many, repo_id=None, tx=tx)


def _step(steps: Steps[T], sent: Objects | None) -> tuple[list[bytes] | None, list[T]]:
    """Run the generator of `drive` until it requests directories or ends. Returns (digests of these
    directories, []), or (None, [its result]) at the end. StopIteration is not raised, because it cannot cross
    threads."""
    began = time.thread_time()
    try:
        return (next(steps) if sent is None else steps.send(sent)), []
    except StopIteration as stop:
        return None, [stop.value]
    finally:
        if (work := _WORK.get()) is not None:
            work.seconds += time.thread_time() - began
