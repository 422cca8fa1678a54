"""Decides whether a change removes so much of a branch that the user must confirm the change: an unmounted
disk or a mistyped `rm` looks like intended removals.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

ASKED_FROM = 100  # files of a tree, from which on its removal is asked about


def removes_most(removed: int, tree: int) -> bool:
    """Whether `removed` files are most of a tree of `tree` files."""
    return tree >= ASKED_FROM and removed * 2 > tree


def count_lost(gone: Iterable[bytes], new: Iterable[bytes]) -> int:
    """The number of removed files that were not renamed. Both arguments are digests; a new file with the
    digest of a removed one counts as its new name."""
    named = Counter(new)
    lost = 0
    for digest in gone:
        if named[digest] > 0:
            named[digest] -= 1
        else:
            lost += 1
    return lost
