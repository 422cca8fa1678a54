"""Finds the nearest common ancestors of two seals. Seals that were merged in count as ancestors too."""

from __future__ import annotations

import heapq
from collections.abc import Sequence

from localstore.core.merge.base import Node, Relation, relation
from relay.db import history as walks
from relay.db import seal as rows
from relay.db.engine.database import LIST_CHUNK, Tx

WINDOW = 256  # generations read at once


class _SearchedSeal(Node, frozen=True):
    """A seal in a search for common ancestors. `merged`: the merged seals that the repository has. `above`,
    which `Node` defines: `parents` and all merged seals. `order_at`: the time by which histories are
    sorted."""

    parents: Sequence[str]
    merged: Sequence[str]
    order_at: int


async def merge_bases(tx: Tx, ours: str, theirs: str) -> Relation:
    """Find the nearest common ancestors of two seals. Seals of several generations are read together."""
    loaded: dict[str, _SearchedSeal] = {}
    walk = relation(ours, theirs)
    needed = next(walk)
    while True:
        await _load(tx, None, needed, loaded)
        try:
            needed = walk.send({seal_id: loaded[seal_id] for seal_id in needed})
        except StopIteration as end:
            result: Relation = end.value
            return result


async def only_in_head(
    tx: Tx, repo_id: str, base: str, head: str, *, first_parent: bool = False
) -> list[str]:
    """The seals in the history of `head` that are not in the history of `base`, newest first. `first_parent`:
    only follow the first parents of the head."""
    loaded: dict[str, _SearchedSeal] = {}
    await _load(tx, repo_id, [base, head], loaded)
    in_base, marked = {base}, {base, head}
    heap = [(-loaded[start].rank, start) for start in marked]
    heapq.heapify(heap)
    open_ = int(base != head)  # seals in the heap that the base is not known to have
    only_head: list[str] = []
    while open_:
        _, seal_id = heapq.heappop(heap)
        if seal_id not in in_base:
            open_ -= 1
            only_head.append(seal_id)
        seal = loaded[seal_id]
        await _load(tx, repo_id, seal.above, loaded)
        line = seal.parents[:1] if first_parent else [*seal.parents, *seal.merged]
        for above in seal.above if seal_id in in_base else line:
            if above not in marked:
                marked.add(above)
                heapq.heappush(heap, (-loaded[above].rank, above))
                open_ += 1
                if seal_id in in_base:
                    in_base.add(above)
                    open_ -= 1
            elif seal_id in in_base and above not in in_base:
                in_base.add(above)
                open_ -= 1
    return sorted(only_head, key=lambda seal_id: (-loaded[seal_id].order_at, -loaded[seal_id].rank, seal_id))


async def _load(tx: Tx, repo_id: str | None, ids: Sequence[str], loaded: dict[str, _SearchedSeal]) -> None:
    """Read these seals and some generations of their ancestors into `loaded`. Follows parents first, then the
    seals that were merged in. `repo_id`: the repository whose merged seals go into the field `merged`; with
    None, this field stays empty."""
    waiting, floor = [seal_id for seal_id in ids if seal_id not in loaded], None
    while waiting:
        if floor is None:
            tops = [
                await _highest_generation(tx, waiting[at : at + LIST_CHUNK])
                for at in range(0, len(waiting), LIST_CHUNK)
            ]
            floor = max(tops) - WINDOW
        sources: list[str] = []
        for at in range(0, len(waiting), LIST_CHUNK):
            part = [seal_id for seal_id in waiting[at : at + LIST_CHUNK] if seal_id not in loaded]
            if part:
                sources += await _load_above(tx, repo_id, part, loaded, floor)
        waiting = [seal_id for seal_id in dict.fromkeys(sources) if seal_id not in loaded]


async def _highest_generation(tx: Tx, ids: list[str]) -> int:
    top: int = await tx.value(walks.TOP_GENERATION, ids=ids)
    return top


async def _load_above(
    tx: Tx, repo_id: str | None, ids: list[str], loaded: dict[str, _SearchedSeal], floor: int
) -> list[str]:
    """Read these seals and their ancestors along parents into `loaded`. `floor`: the lowest generation to
    read; a seal has a higher generation than its parents. Returns the seals that were merged into any of the
    seals read."""
    above: dict[str, list[str]] = {}
    generations: dict[str, int] = {}
    for seal_id, generation, parent in await tx.all(walks.GRAPH, ids=ids, floor=floor):
        parents = above.setdefault(seal_id, [])
        generations[seal_id] = generation
        if parent is not None:
            parents.append(parent)
    fresh = [seal_id for seal_id in above if seal_id not in loaded]
    sources: dict[str, list[str]] = {}
    merged: dict[str, list[str]] = {}
    placed: dict[str, tuple[int, int]] = {}
    for first in range(0, len(fresh), LIST_CHUNK):
        some = fresh[first : first + LIST_CHUNK]
        for seal_id, level, rank, order_at in await tx.all(rows.RANKS, ids=some):
            placed[seal_id] = (rank or level, order_at)
        for seal_id, source, _ in await tx.all(rows.SOURCES, ids=some):
            sources.setdefault(seal_id, []).append(source)
        if repo_id is not None:
            merged |= await rows.held_sources(
                tx, repo_id, [seal_id for seal_id in some if seal_id in sources]
            )
    for seal_id in fresh:
        every, (rank, order_at) = [*above[seal_id], *sources.get(seal_id, ())], placed[seal_id]
        loaded[seal_id] = _SearchedSeal(rank, every, above[seal_id], merged.get(seal_id, ()), order_at)
    return [source for seal_id, named in sources.items() if generations[seal_id] >= floor for source in named]
