"""Caches of merges. When a proposal is shown, the relay tries its merge; the result is used again when the
merge is prepared. Merged texts are also cached by themselves. So another merge of the same three texts does
not merge them again."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager
from operator import attrgetter

import msgspec

from localstore.core.merge.three_way import MergedTree
from localstore.core.model.limits import MIB
from relay.base.locks import Locks
from relay.base.recent import Recent

MOST_BYTES = 32 * MIB
LARGEST = MOST_BYTES // 8  # of one outcome that is kept
EACH = 400  # bytes in memory, about, of a change, of a name of a merged file or of a directory

Key = tuple[str, tuple[bytes | None, ...], bytes, bytes, bool]
"""Repository, roots of the merge bases, of ours and of theirs; whether files that both changed are
conflicts. Such roots have one outcome."""


class Outcome(msgspec.Struct, frozen=True):
    """The result of a merge; it never changes. `alike`: path → digest of each directory of the tree `theirs`
    that differs from the merge base. The merged tree often has the same directories, which are then not
    computed again."""

    merged: MergedTree
    alike: Mapping[str, bytes]

    @property
    def size(self) -> int:
        """The approximate memory of this result in bytes."""
        merge = self.merged
        entries = len(merge.changes) + len(merge.merged) + len(merge.conflicts) + len(self.alike)
        return EACH * (1 + entries) + sum(map(len, merge.texts.values()))


class Outcomes(Recent[Key, Outcome]):
    """A cache of merge results. `most`: limit in bytes for all of them. `largest`: a result with more bytes
    is not cached."""

    def __init__(self, most: int = MOST_BYTES, largest: int = LARGEST) -> None:
        super().__init__(most, attrgetter("size"), largest)
        self._locks = Locks[Key]()

    def turn(self, key: Key) -> AbstractAsyncContextManager[None]:
        """A lock for one merge. Callers that had to wait for it get the result from the cache. Never wait for
        it inside a transaction, because its holder reads the database."""
        return self._locks.of(key)


TEXTS_BYTES = 16 * MIB
Joined = tuple[bytes | None, bytes, bytes]
"""Digests of the text before, of ours and of theirs."""


class Joins(Recent[Joined, tuple[bytes | None]]):
    """A cache of merged texts. The key is the digests of the three texts: base, ours and theirs. The value is
    a tuple with the merged text, or with None if the texts conflict."""

    def __init__(self) -> None:
        super().__init__(TEXTS_BYTES, lambda outcome: EACH + len(outcome[0] or b""), TEXTS_BYTES // 8)


class FoundMoves(Recent[bytes, Mapping[str, str]]):
    """A cache of the files that one side of a merge has moved, as new path by old path. The key is a digest
    of all that the search compares."""

    def __init__(self) -> None:
        super().__init__(TEXTS_BYTES, lambda outcome: EACH * (1 + len(outcome)))
