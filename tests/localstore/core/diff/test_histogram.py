"""An edit that is found at a glance is what the whole search finds."""

from __future__ import annotations

import random

import pytest

from localstore.core.diff.alignment import intern_elements
from localstore.core.diff.histogram import as_git_merges, histogram_hunks
from localstore.core.diff.sliding import slid

PLENTY = 1_000_000_000


def edits(rng: random.Random) -> tuple[list[bytes], list[bytes]]:
    """A text of few or many different lines, and the text after one or two edits."""
    words = rng.choice([2, 3, 5, 8, 20, 100])
    old = [b"%d\n" % rng.randrange(words) for _ in range(rng.randint(0, rng.choice([3, 8, 20, 60])))]
    new = list(old)
    for _ in range(rng.choice([1, 1, 1, 2])):
        start = rng.randint(0, len(new))
        came = words * rng.choice([1, 2, 50])
        new[start : start + rng.choice([0, 0, 1, 1, 2, 3, 8])] = [
            b"%d\n" % rng.randrange(came) for _ in range(rng.choice([0, 0, 1, 1, 2, 3]))
        ]
    return old, new


@pytest.mark.parametrize("seed", range(4))
def test_what_is_found_at_a_glance_is_what_the_search_finds(seed: int) -> None:
    rng = random.Random(seed)
    for _ in range(4000):
        old, new = edits(rng)
        a, b = intern_elements(old, new)
        assert as_git_merges(old, new) == slid(a, b, histogram_hunks(a, b, PLENTY), None), (old, new)
