"""Decides whether a change removes so many files of a branch that the user has to confirm it. An unmounted
disk or a mistyped `rm` looks like intended removals."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

ASKED_FROM = 100  # files of a tree, from which on its removal is asked about


def removes_most(removed: int, tree: int) -> bool:
    """Whether `removed` files are so many of a tree of `tree` files that the user has to confirm: more than
    half, in a tree of at least ASKED_FROM files."""
    return tree >= ASKED_FROM and removed * 2 > tree


def count_lost(gone: Iterable[bytes], new: Iterable[bytes]) -> int:
    """How many removed files were not just renamed. `gone`, `new`: digests of the removed and of the new
    files. A removed file counts as renamed if a new file has its digest."""
    named = Counter(new)
    lost = 0
    for digest in gone:
        if named[digest] > 0:
            named[digest] -= 1
        else:
            lost += 1
    return lost
