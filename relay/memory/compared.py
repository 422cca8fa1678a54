"""Caches of comparisons: the changed files of two trees, and the pages made from them."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field

from localstore.core.model.history import ChangedFile
from localstore.core.model.limits import MIB
from localstore.core.tree import TreeEntry
from relay.base.locks import Locks
from relay.base.recent import Recent

PAIRS = 400_000  # changed files, of all comparisons together; a comparison counts as one more
PAGES_BYTES = 32 * MIB
FILE_BYTES = 500  # of a changed file in memory besides its patch, about

Key = tuple[str, int | None, bytes | None, bytes]
"""Repository, number of its path policy (None: all is seen), the trees before and after."""


@dataclass(slots=True, frozen=True)
class Pair:
    """A changed file before and after the change. If the file is absent on one side, path and entry are None
    there. `similarity`: how similar the two texts of a moved file are."""

    old_path: str | None
    old: TreeEntry | None
    path: str | None
    new: TreeEntry | None
    similarity: int | None = None

    @property
    def binary(self) -> bool:
        return any(side is not None and side.kind != "text" for side in (self.old, self.new))

    @property
    def weight(self) -> int:
        return sum(side.size for side in (self.old, self.new) if side is not None)

    @property
    def status(self) -> str:
        if self.old is None:
            return "added"
        if self.new is None:
            return "removed"
        return "modified" if self.old_path == self.path else "renamed"


@dataclass(slots=True, frozen=True)
class ChangedFilesPage:
    """A page of the changed files of a comparison. `after`: the index of the first file of the next page, or
    None on the last page."""

    files: list[ChangedFile]
    after: int | None

    def weigh(self) -> int:
        """The approximate memory of this page in bytes."""
        return FILE_BYTES + sum(FILE_BYTES + len(file.patch or "") for file in self.files)


def weigh_pairs(pairs: list[Pair]) -> int:
    """The weight of a list of changed files in a cache whose total weight is limited. It is 1 for an empty
    list, because a weight must not be 0."""
    return 1 + len(pairs)


@dataclass(slots=True)
class Comparisons:
    pairs: Recent[Key, list[Pair]] = field(default_factory=lambda: Recent(PAIRS, weigh_pairs))
    pages: Recent[tuple[Key, int], ChangedFilesPage] = field(
        default_factory=lambda: Recent(PAGES_BYTES, ChangedFilesPage.weigh)
    )
    _turns: Locks[Key] = field(default_factory=Locks)

    def turn(self, key: Key) -> AbstractAsyncContextManager[None]:
        """A lock for one comparison. Callers that had to wait for the lock find the result in the cache."""
        return self._turns.of(key)
