"""When a change removes so much of a branch that somebody is asked first: an unmounted disk and a mistyped
`rm` look like work."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

ASKED_FROM = 100  # files of a tree, from which on its removal is asked about


def removes_most(removed: int, tree: int) -> bool:
    """Whether so many removed files are most of a tree of so many."""
    return tree >= ASKED_FROM and removed * 2 > tree


def count_lost(gone: Iterable[bytes], new: Iterable[bytes]) -> int:
    """How many of the removed files were not just renamed. Both are digests; each new file is the new name of
    one removed file."""
    named = Counter(new)
    lost = 0
    for digest in gone:
        if named[digest] > 0:
            named[digest] -= 1
        else:
            lost += 1
    return lost
