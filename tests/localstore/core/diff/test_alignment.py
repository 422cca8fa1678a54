"""Differing stretches of two sequences."""

from __future__ import annotations

import random
from itertools import pairwise

from hypothesis import given, settings
from hypothesis import strategies as st

from localstore.core.diff.alignment import hunks, intern_elements

SEQUENCES = st.lists(st.integers(0, 6), max_size=40)


@given(SEQUENCES, SEQUENCES, st.sampled_from([0, 10, 10_000]))
@settings(max_examples=400)
def test_everything_outside_the_hunks_is_equal(old: list[int], new: list[int], cells: int) -> None:
    at = to = 0
    for i1, i2, j1, j2 in [*hunks(old, new, cells), (len(old), len(old), len(new), len(new))]:
        assert old[at:i1] == new[to:j1]
        at, to = i2, j2


@given(SEQUENCES, SEQUENCES, st.sampled_from([0, 10, 10_000]))
def test_hunks_do_not_touch_and_are_not_empty(old: list[int], new: list[int], cells: int) -> None:
    found = hunks(old, new, cells)
    assert all(h.old_start < h.old_end or h.new_start < h.new_end for h in found)
    assert all(a.old_end < b.old_start and a.new_end < b.new_start for a, b in pairwise(found))


def test_small_gaps_are_minimal() -> None:
    [hunk] = hunks([1, 2, 3, 4], [1, 3, 4], 100)
    assert hunk == (1, 2, 1, 1)


def test_anchors_cut_what_is_too_large_to_solve() -> None:
    rng = random.Random(1)
    old = list(range(5000))
    new = list(old)
    for place in sorted(rng.sample(range(5000), 50), reverse=True):
        new[place : place + 1] = [-place, -place]
    found = hunks(old, new, cells=100)
    assert sum(h.old_end - h.old_start for h in found) == 50
    assert sum(h.new_end - h.new_start for h in found) == 100


def test_elements_that_repeat_alike_are_anchors_too() -> None:
    old = [0, 1] * 500
    assert hunks(old, [*old[:300], 7, *old[300:]], cells=100) == [(300, 300, 300, 301)]
    found = hunks([5, *old, 5], [6, *old, 6], cells=100)
    assert found == [(0, 1, 0, 1), (1001, 1002, 1001, 1002)]
    found = hunks([5, *old, 5, 8], [5, 6, *old, 6, 5, 9], cells=100)
    assert sum(h.old_end - h.old_start for h in found) <= 2


def test_interned_numbers_agree() -> None:
    a, b = intern_elements([b"x", b"y", b"x"], [b"y", b"z"])
    assert (a, b) == ([0, 1, 0], [1, 2])
