"""Computes how two seals are related: their nearest common ancestor, and the numbers of seals that only one
of them has.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass

from relay.db import history as walks
from relay.db.engine.database import LIST_CHUNK, Tx

WINDOW = 256  # generations read at once
_BASE, _HEAD = 1, 2
_BOTH = _BASE | _HEAD


@dataclass(slots=True, frozen=True)
class Relation:
    """How two seals are related. `merge_base`: their nearest common ancestor; None if their histories are
    unrelated. `ahead`, `behind`: number of seals that only the head has, and that only the base has."""

    merge_base: str | None
    ahead: int
    behind: int


class Graph:
    """A graph of seals and their parents, which are read when they are needed. Each read covers some
    generations at once, for all seals at the edge of the graph (known as parents, but not read yet). If each
    read were for one seal, parallel histories would be read again and again."""

    def __init__(self, tx: Tx) -> None:
        self._tx = tx
        self._generation: dict[str, int] = {}
        self._parents: dict[str, list[str]] = {}
        self._edge: set[str] = set()  # known as parents, not read yet

    async def generation(self, seal_id: str) -> int:
        if seal_id not in self._generation:
            await self._load(seal_id)
        return self._generation[seal_id]

    async def parents(self, seal_id: str) -> list[str]:
        """The parents of a seal in order; [] for the first seal of a history."""
        if seal_id not in self._parents:
            await self._load(seal_id)
        return self._parents[seal_id]

    async def _load(self, seal_id: str) -> None:
        ids = sorted(self._edge | {seal_id})
        top = max(row[0] for row in await self._tx.all(walks.TOP_GENERATION, ids=ids))
        for start in range(0, len(ids), LIST_CHUNK):
            part = ids[start : start + LIST_CHUNK]
            parents_by_id: dict[str, list[str]] = {}
            for seal_id, generation, parent in await self._tx.all(walks.GRAPH, ids=part, floor=top - WINDOW):
                self._generation[seal_id] = generation
                above = parents_by_id.setdefault(seal_id, [])
                if parent is not None:
                    above.append(parent)
            self._parents.update(parents_by_id)
            self._edge.update(parent for above in parents_by_id.values() for parent in above)
        self._edge = {edge_id for edge_id in self._edge if edge_id not in self._parents}


async def find_relation(tx: Tx, base: str, head: str) -> Relation:
    """Find how two seals are related. Walks both histories together until only common seals are left.

    Seals of a higher generation come first. The generation of a seal is one more than the highest generation
    of its parents, so each seal comes after all its descendants. When it comes, it is known whether base,
    head or both descend from it. The first seal from which both descend is the nearest common ancestor.
    """
    graph = Graph(tx)
    marks = {base: _BASE}
    marks[head] = marks.get(head, 0) | _HEAD
    heap = [(-await graph.generation(start), start) for start in marks]
    heapq.heapify(heap)
    merge_base: str | None = None
    counts = {_BASE: 0, _HEAD: 0, _BOTH: 0}
    partial = sum(mark != _BOTH for mark in marks.values())
    while heap and (partial or merge_base is None):
        _, seal_id = heapq.heappop(heap)
        mark = marks[seal_id]
        counts[mark] += 1
        if mark == _BOTH:
            merge_base = merge_base or seal_id
        else:
            partial -= 1
        for parent in await graph.parents(seal_id):
            before = marks.get(parent)
            marks[parent] = (before or 0) | mark
            if before is None:
                heapq.heappush(heap, (-await graph.generation(parent), parent))
                partial += mark != _BOTH
            elif before != _BOTH and marks[parent] == _BOTH:
                partial -= 1
    return Relation(merge_base, counts[_HEAD], counts[_BASE])
