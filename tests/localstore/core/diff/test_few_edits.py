"""The short way between two long sequences, against the one that solves them exactly."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st
from rapidfuzz.distance import Indel

from localstore.core.diff.few_edits import MOST_EDITS, WIDE, few_edits

SEQUENCES = st.lists(st.integers(0, 3), max_size=40)


@given(SEQUENCES, SEQUENCES)
def test_no_way_is_shorter(old: list[int], new: list[int]) -> None:
    found = few_edits(old, new)
    least = Indel.distance(old, new)
    if found is None:
        assert least > MOST_EDITS
        return
    assert sum(i2 - i1 + j2 - j1 for i1, i2, j1, j2 in found) == least
    rebuilt, at = [], 0
    for i1, i2, j1, j2 in found:
        rebuilt += old[at:i1] + new[j1:j2]
        at = i2
    assert rebuilt + old[at:] == new
    assert all(one.old_end < two.old_start for one, two in pairwise(found))


@given(st.lists(st.integers(0, 3 * WIDE), max_size=20), st.booleans())
def test_long_stretches_are_passed_whole(places: list[int], repeating: bool) -> None:
    old = [0] * 3 * WIDE if repeating else list(range(3 * WIDE))
    new = old.copy()
    for place in places:
        new.insert(place, -1)
    found = few_edits(old, new)
    assert found is not None
    assert sum(j2 - j1 for _, _, j1, j2 in found) == len(places)
    assert all(new[j] == -1 for _, _, j1, j2 in found for j in range(j1, j2))


def test_too_many_edits_are_no_answer() -> None:
    assert few_edits([1] * 100, [2] * 100) is None
    assert few_edits([], [1] * (MOST_EDITS + 1)) is None
    assert few_edits([], [1] * MOST_EDITS) == [(0, 0, 0, MOST_EDITS)]
