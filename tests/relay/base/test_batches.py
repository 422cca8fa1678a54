"""Portions keep every item, in order, and stay within their bound."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from relay.base.batches import split_batches

MOST = 20


@given(st.lists(st.integers(0, 30)))
def test_portions_are_the_items_and_as_few_as_the_bound_allows(sizes: list[int]) -> None:
    found = list(split_batches(sizes, MOST, lambda size: size))
    assert [size for part in found for size in part] == sizes
    assert all(part and (len(part) == 1 or sum(part) <= MOST) for part in found)
    assert all(sum(part) + following[0] > MOST for part, following in pairwise(found))
