"""Where a group of changed lines is put."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from localstore.core.diff.alignment import Hunk, hunks
from localstore.core.diff.sliding import slid

SEQUENCES = st.lists(st.integers(0, 3), max_size=25)


@given(SEQUENCES, SEQUENCES)
def test_sliding_keeps_the_difference(old: list[int], new: list[int]) -> None:
    found = hunks(old, new, 10_000)
    moved = slid(old, new, found, None)
    rebuilt, at = [], 0
    for i1, i2, j1, j2 in moved:
        rebuilt += old[at:i1] + new[j1:j2]
        at = i2
    assert rebuilt + old[at:] == new
    assert sum(h.old_end - h.old_start for h in moved) == sum(h.old_end - h.old_start for h in found)


def test_groups_go_down_as_far_as_they_can() -> None:
    assert slid([1, 2, 2, 2, 3], [1, 2, 2, 3], [Hunk(1, 2, 1, 1)], None) == [(3, 4, 3, 3)]


def test_an_insertion_meets_a_deletion() -> None:
    old, new = [1, 2, 9, 2, 3], [1, 2, 2, 2, 3]
    assert slid(old, new, [Hunk(1, 1, 1, 2), Hunk(2, 3, 3, 3)], None) == [(2, 3, 2, 3)]


def test_indentation_decides_when_asked() -> None:
    texts = [b"{\n", b"  a\n", b"}\n", b"\n", b"{\n", b"  b\n", b"}\n"]
    old, new = [0, 1, 2], [0, 1, 2, 3, 0, 5, 2]
    lowest = [Hunk(2, 2, 2, 6)]
    assert slid(old, new, lowest, None) == [(3, 3, 3, 7)]
    assert slid(old, new, lowest, (texts[:3], texts)) == [(3, 3, 3, 7)]
    shared = [b"\n", b"def a():\n", b"  x\n", b"\n", b"def b():\n", b"  y\n"]
    assert slid([0, 4, 5], [0, 1, 2, 0, 4, 5], [Hunk(0, 0, 0, 3)], ([shared[0], *shared[4:]], shared)) == [
        (1, 1, 1, 4)
    ]
