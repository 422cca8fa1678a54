"""The nearest common ancestors of two seals; seals that a seal was merged from count as ancestors too."""

from __future__ import annotations

import heapq
from collections.abc import Sequence

from localstore.core.merge.base import Node, Relation, relation
from relay.db import history as walks
from relay.db import seal as rows
from relay.db.engine.database import LIST_CHUNK, Tx

WINDOW = 256  # generations read at once


class _Seal(Node, frozen=True):
    """`parents` and `merged`: those of `above` that stand in its history, in a repository. `order_at`: its
    time in the order of history."""

    parents: Sequence[str]
    merged: Sequence[str]
    order_at: int


async def merge_bases(tx: Tx, ours: str, theirs: str) -> Relation:
    """The nearest common ancestors. Nodes of a window of generations are read together."""
    known: dict[str, _Seal] = {}
    walk = relation(ours, theirs)
    wanted = next(walk)
    while True:
        await _load(tx, None, wanted, known)
        try:
            wanted = walk.send({one: known[one] for one in wanted})
        except StopIteration as end:
            found: Relation = end.value
            return found


async def only_in_head(
    tx: Tx, repo_id: str, base: str, head: str, *, first_parent: bool = False
) -> list[str]:
    """The seals in the history of the head that the base does not come from, in the order of history.
    `first_parent`: of the head, its first parents alone."""
    known: dict[str, _Seal] = {}
    await _load(tx, repo_id, [base, head], known)
    in_base, marked = {base}, {base, head}
    heap = [(-known[one].rank, one) for one in marked]
    heapq.heapify(heap)
    open_ = int(base != head)  # seals in the heap that the base is not known to have
    found: list[str] = []
    while open_:
        _, seal_id = heapq.heappop(heap)
        if seal_id not in in_base:
            open_ -= 1
            found.append(seal_id)
        seal = known[seal_id]
        await _load(tx, repo_id, seal.above, known)
        line = seal.parents[:1] if first_parent else [*seal.parents, *seal.merged]
        for one in seal.above if seal_id in in_base else line:
            if one not in marked:
                marked.add(one)
                heapq.heappush(heap, (-known[one].rank, one))
                open_ += 1
                if seal_id in in_base:
                    in_base.add(one)
                    open_ -= 1
            elif seal_id in in_base and one not in in_base:
                in_base.add(one)
                open_ -= 1
    return sorted(found, key=lambda one: (-known[one].order_at, -known[one].rank, one))


async def _load(tx: Tx, repo_id: str | None, ids: Sequence[str], known: dict[str, _Seal]) -> None:
    """Read these seals, and what is above them for some generations: first what parents lead to, then
    together what that was merged from. `merged` is known for a `repo_id` only."""
    waiting, floor = [one for one in ids if one not in known], None
    while waiting:
        if floor is None:
            tops = [
                await _top(tx, waiting[at : at + LIST_CHUNK]) for at in range(0, len(waiting), LIST_CHUNK)
            ]
            floor = max(tops) - WINDOW
        sources: list[str] = []
        for at in range(0, len(waiting), LIST_CHUNK):
            part = [one for one in waiting[at : at + LIST_CHUNK] if one not in known]
            if part:
                sources += await _load_above(tx, repo_id, part, known, floor)
        waiting = [one for one in dict.fromkeys(sources) if one not in known]


async def _top(tx: Tx, ids: list[str]) -> int:
    top: int = await tx.value(walks.TOP_GENERATION, ids=ids)
    return top


async def _load_above(
    tx: Tx, repo_id: str | None, ids: list[str], known: dict[str, _Seal], floor: int
) -> list[str]:
    """Read these seals and what parents above the floor lead to. Returns what those above it were merged
    from."""
    above: dict[str, list[str]] = {}
    generations: dict[str, int] = {}
    for one, generation, parent in await tx.all(walks.GRAPH, ids=ids, floor=floor):
        parents = above.setdefault(one, [])
        generations[one] = generation
        if parent is not None:
            parents.append(parent)
    fresh = [one for one in above if one not in known]
    sources: dict[str, list[str]] = {}
    merged: dict[str, list[str]] = {}
    placed: dict[str, tuple[int, int]] = {}
    for first in range(0, len(fresh), LIST_CHUNK):
        some = fresh[first : first + LIST_CHUNK]
        for one, level, rank, order_at in await tx.all(rows.RANKS, ids=some):
            placed[one] = (rank or level, order_at)
        for one, source, _ in await tx.all(rows.SOURCES, ids=some):
            sources.setdefault(one, []).append(source)
        if repo_id is not None:
            merged |= await rows.held_sources(tx, repo_id, [one for one in some if one in sources])
    for one in fresh:
        every, (rank, order_at) = [*above[one], *sources.get(one, ())], placed[one]
        known[one] = _Seal(rank, every, above[one], merged.get(one, ()), order_at)
    return [source for one, named in sources.items() if generations[one] >= floor for source in named]
