"""Finds the changed runs of two sequences: in bounded time for any input, and as few changes as possible for
ordinary input.

Elements are compared for equality, and must be hashable. Integers (see `intern_elements`) are fastest."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Hashable, Iterable, Sequence
from itertools import islice
from operator import itemgetter, lt
from typing import NamedTuple

import msgspec

REPEATED = -1
second = itemgetter(1)
ROUNDS = 4  # how deep anchors may be looked for inside the gaps between anchors


class Hunk(NamedTuple):
    """old[old_start:old_end] was replaced by new[new_start:new_end]; at least one of them is not empty."""

    old_start: int
    old_end: int
    new_start: int
    new_end: int


class _Gap(msgspec.Struct, frozen=True):
    hunk: Hunk
    round: int


def intern_elements(*sequences: Iterable[Hashable]) -> list[list[int]]:
    """The sequences with equal elements replaced by equal small integers."""
    numbers: dict[Hashable, int] = {}
    return [[numbers.setdefault(element, len(numbers)) for element in sequence] for sequence in sequences]


def hunks(old: Sequence[int], new: Sequence[int], cells: int) -> list[Hunk]:
    """The changed runs from `old` to `new`, ascending; no two of them touch.

    The size of a changed region is the number of its elements in `old` times the number in `new`. A region of
    at most `cells` is compared exactly, by a longest common subsequence, which takes cells / 8 bytes of
    memory. A larger region is first split at anchors: elements that occur equally often on both sides,
    preferably once. A large region without an anchor becomes one hunk."""
    todo = [_Gap(Hunk(0, len(old), 0, len(new)), 0)]
    runs: list[Hunk] = []
    while todo:
        gap = _trim(old, new, todo.pop())
        i1, i2, j1, j2 = gap.hunk
        if i1 == i2 or j1 == j2:
            runs.append(gap.hunk)
        elif (i2 - i1) * (j2 - j1) <= cells:
            runs.extend(_exact(old, new, gap.hunk))
        elif gap.round < ROUNDS and (anchors := _anchors(old, new, gap.hunk)):
            todo.extend(_between(gap, anchors))
        else:
            runs.append(gap.hunk)
    return join_touching(
        sorted(hunk for hunk in runs if hunk.old_start < hunk.old_end or hunk.new_start < hunk.new_end)
    )


def _trim(old: Sequence[int], new: Sequence[int], gap: _Gap) -> _Gap:
    i1, i2, j1, j2 = gap.hunk
    while i1 < i2 and j1 < j2 and old[i1] == new[j1]:
        i1, j1 = i1 + 1, j1 + 1
    while i1 < i2 and j1 < j2 and old[i2 - 1] == new[j2 - 1]:
        i2, j2 = i2 - 1, j2 - 1
    return _Gap(Hunk(i1, i2, j1, j2), gap.round)


def _exact(old: Sequence[int], new: Sequence[int], hunk: Hunk) -> list[Hunk]:
    from rapidfuzz.distance import Indel  # loads for 7 ms, and most commands compare no texts

    i, i2, j, j2 = hunk
    return [
        Hunk(i + op.src_start, i + op.src_end, j + op.dest_start, j + op.dest_end)
        for op in Indel.opcodes(old[i:i2], new[j:j2])
        if op.tag != "equal"
    ]


def _anchors(old: Sequence[int], new: Sequence[int], hunk: Hunk) -> list[tuple[int, int]]:
    """Pairs (index in old, index in new) of equal elements at which the hunk can be split. Both indices
    ascend from pair to pair."""
    single_old = _single(old, hunk.old_start, hunk.old_end)
    single_new = _single(new, hunk.new_start, hunk.new_end)
    unique = [
        (i, single_new[element])
        for element, i in single_old.items()
        if i != REPEATED and single_new.get(element, REPEATED) != REPEATED
    ]
    return _longest_ascending(unique or _repeated_alike(old, new, hunk))


def _single(sequence: Sequence[int], start: int, end: int) -> dict[int, int]:
    """Maps each element of the sequence between `start` and `end` to its index. An element that occurs
    several times there is mapped to REPEATED."""
    places: dict[int, int] = {}
    for index in range(start, end):
        element = sequence[index]
        places[element] = REPEATED if element in places else index
    return places


def _repeated_alike(old: Sequence[int], new: Sequence[int], hunk: Hunk) -> list[tuple[int, int]]:
    """Pairs (index in old, index in new) of the elements that occur equally often on both sides of the hunk.
    The n-th occurrence in `old` is paired with the n-th one in `new`."""
    places_old = _places(old, hunk.old_start, hunk.old_end)
    places_new = _places(new, hunk.new_start, hunk.new_end)
    alike = ((a, places_new.get(element, [])) for element, a in places_old.items())
    return sorted(pair for a, b in alike if len(a) == len(b) for pair in zip(a, b, strict=True))


def _places(sequence: Sequence[int], start: int, end: int) -> dict[int, list[int]]:
    places: dict[int, list[int]] = {}
    for index in range(start, end):
        places.setdefault(sequence[index], []).append(index)
    return places


def _longest_ascending(pairs: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """The longest subsequence of `pairs` in which both members ascend, found by patience sorting. The caller
    has sorted `pairs` by the first member."""
    if all(map(lt, map(second, pairs), map(second, islice(pairs, 1, None)))):
        return pairs
    tops: list[int] = []  # smallest second member that ends a run of each length
    top_index: list[int] = []
    previous: list[int] = []
    for index, (_, j) in enumerate(pairs):
        length = bisect_left(tops, j)
        previous.append(top_index[length - 1] if length else -1)
        if length == len(tops):
            tops.append(j)
            top_index.append(index)
        else:
            tops[length], top_index[length] = j, index
    run = []
    index = top_index[-1] if top_index else -1
    while index >= 0:
        run.append(pairs[index])
        index = previous[index]
    return run[::-1]


def _between(gap: _Gap, anchors: list[tuple[int, int]]) -> list[_Gap]:
    i, i_end, j, j_end = gap.hunk
    gaps = []
    for anchor_i, anchor_j in [*anchors, (i_end, j_end)]:
        if anchor_i > i or anchor_j > j:
            gaps.append(_Gap(Hunk(i, anchor_i, j, anchor_j), gap.round + 1))
        i, j = anchor_i + 1, anchor_j + 1
    return gaps


def join_touching(runs: list[Hunk]) -> list[Hunk]:
    """Joins hunks that touch both in the old and in the new sequence. Returns the resulting hunks."""
    whole: list[Hunk] = []
    for hunk in runs:
        if whole and whole[-1].old_end == hunk.old_start and whole[-1].new_end == hunk.new_start:
            whole[-1] = Hunk(whole[-1].old_start, hunk.old_end, whole[-1].new_start, hunk.new_end)
        else:
            whole.append(hunk)
    return whole
