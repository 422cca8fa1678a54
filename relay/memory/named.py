"""A cache of the files that filtered views see: for each tree, the digests of these files. Computing them
takes a walk through the whole tree.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections import OrderedDict
from collections.abc import Iterable
from operator import attrgetter

from localstore.core.encoding import DIGEST_SIZE
from localstore.core.model.limits import MIB
from relay.base.recent import Recent

FIRST = 8  # bytes of a digest by which it is found
EACH = 300  # bytes in memory of a tree's key and objects, about
LARGE_BYTES = 200  # in memory, of the digest of a large file
MOST_BYTES = 64 * MIB

Key = tuple[str, int, bytes]
"""Repository, number of its path policy, root of a tree. All filtered views of a repository see the same."""


class Named:
    """The digests of those files of one tree that a filtered view sees. `large`: digests of chunked files,
    the most recently requested first."""

    __slots__ = ("_all", "_firsts", "large")

    def __init__(self, digests: Iterable[bytes], large: Iterable[bytes]) -> None:
        ordered = sorted(set(digests))
        self._all = b"".join(ordered)
        self._firsts = array("Q", [int.from_bytes(digest[:FIRST], "big") for digest in ordered])
        self.large = OrderedDict.fromkeys(large)

    def __contains__(self, digest: bytes) -> bool:
        first = int.from_bytes(digest[:FIRST], "big")
        at = bisect_left(self._firsts, first)
        while at < len(self._firsts) and self._firsts[at] == first:
            if self._all[at * DIGEST_SIZE : (at + 1) * DIGEST_SIZE] == digest:
                return True
            at += 1
        return False

    def ask_first(self, digest: bytes) -> None:
        """Move a large file to the front of `large`, because its chunks are probably requested next."""
        if digest in self.large:
            self.large.move_to_end(digest, last=False)

    @property
    def size(self) -> int:
        """The approximate memory of these digests in bytes."""
        return EACH + len(self._all) + FIRST * len(self._firsts) + LARGE_BYTES * len(self.large)


class NamedTrees(Recent[Key, Named]):
    """A cache of the digests that filtered views of trees show, for the most recently used trees. `most`:
    limit in bytes for all of them."""

    def __init__(self, most: int = MOST_BYTES) -> None:
        super().__init__(most, attrgetter("size"))
