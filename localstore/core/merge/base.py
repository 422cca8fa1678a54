"""Finds the nearest common ancestors of two seals. The ancestors of a seal are its parents, the seals that
its signed provenance names as merged, and their ancestors. So a squash, which has one parent, still
contains the whole merged branch."""

from __future__ import annotations

import heapq
from collections.abc import Generator, Mapping, Sequence

import msgspec

_OURS, _THEIRS, _STALE = 1, 2, 4
_BOTH = _OURS | _THEIRS


class Node(msgspec.Struct, frozen=True):
    """A seal in the graph of history. `above`: its parents and the seals that were merged into it. `rank`: a
    number that is higher than the ranks of all seals in `above`."""

    rank: int
    above: Sequence[str]


Walk = Generator[list[str], Mapping[str, Node], "Relation"]
"""Yields ids, is sent their nodes."""


class Relation(msgspec.Struct, frozen=True):
    """How two seals are related. `bases`: ids of the nearest common ancestors, highest rank first; [] for
    unrelated histories. `common`: ids of ancestors of both seals. It has only those that were visited, which
    are few. The ancestors of only one of the two were all visited."""

    bases: list[str]
    common: frozenset[str]


def relation(ours: str, theirs: str) -> Walk:
    """Computes how two seals are related. This is a generator: it yields ids of seals, is sent their nodes in
    the graph of history, and returns the `Relation`. Seals are visited from the highest rank down, so a seal
    comes after all its descendants. Only then is it known whether it is an ancestor of one of the two seals
    or of both. The search ends when only common ancestors are left."""
    marks = {ours: _OURS}
    marks[theirs] = marks.get(theirs, 0) | _THEIRS
    nodes = yield list(marks)
    heap = [(-nodes[tip].rank, tip) for tip in marks]
    heapq.heapify(heap)
    loaded = dict(nodes)
    bases: list[str] = []
    undecided = len(heap)  # seals in the heap that are not ancestors of a common one
    while undecided:
        _, seal = heapq.heappop(heap)
        mark = marks[seal]
        undecided -= not mark & _STALE
        if mark == _BOTH:
            bases.append(seal)
            mark |= _STALE  # an ancestor of a common ancestor is not a nearest one
        above = [parent for parent in loaded[seal].above if parent not in loaded]
        if above:
            loaded.update((yield above))
        for parent in dict.fromkeys(loaded[seal].above):
            before = marks.get(parent)
            marks[parent] = (before or 0) | mark
            if before is None:
                heapq.heappush(heap, (-loaded[parent].rank, parent))
                undecided += not mark & _STALE
            elif not before & _STALE and mark & _STALE:
                undecided -= 1
    return Relation(bases, frozenset(seal for seal, mark in marks.items() if mark & _BOTH == _BOTH))
