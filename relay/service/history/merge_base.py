"""The nearest common ancestors of two seals; seals that a seal was merged from count as ancestors too."""

from __future__ import annotations

import heapq

from localstore.core.merge.base import Node, Relation, relation
from relay.db import history as walks
from relay.db import seal as rows
from relay.db.engine.database import LIST_CHUNK, Tx

WINDOW = 256  # generations read at once


async def merge_bases(tx: Tx, ours: str, theirs: str) -> Relation:
    """The nearest common ancestors. Nodes of a window of generations are read together."""
    known: dict[str, Node] = {}
    walk = relation(ours, theirs)
    wanted = next(walk)
    while True:
        await _load(tx, [one for one in wanted if one not in known], known)
        try:
            wanted = walk.send({one: known[one] for one in wanted})
        except StopIteration as end:
            found: Relation = end.value
            return found


async def only_in_head(tx: Tx, base: str, head: str) -> list[str]:
    """The seals that the head comes from and the base does not, each before those that it comes from."""
    known: dict[str, Node] = {}
    await _load(tx, [base, head], known)
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
        await _load(tx, [one for one in known[seal_id].above if one not in known], known)
        for one in known[seal_id].above:
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
    return found


async def _load(tx: Tx, ids: list[str], known: dict[str, Node]) -> None:
    """Read these seals, and what is above them for some generations."""
    for start in range(0, len(ids), LIST_CHUNK):
        part = [one for one in ids[start : start + LIST_CHUNK] if one not in known]
        if not part:
            continue
        top = max(row[0] for row in await tx.all(walks.TOP_GENERATION, ids=part))
        above: dict[str, list[str]] = {}
        for one, _, parent in await tx.all(walks.GRAPH, ids=part, floor=top - WINDOW):
            parents = above.setdefault(one, [])
            if parent is not None:
                parents.append(parent)
        found = list(above)
        ranks: dict[str, int] = {}
        for first in range(0, len(found), LIST_CHUNK):
            some = found[first : first + LIST_CHUNK]
            ranks |= {one: rank or level for one, level, rank in await tx.all(rows.RANKS, ids=some)}
            for one, source in await tx.all(rows.SOURCES, ids=some):
                above[one].append(source)
        known.update({one: Node(ranks[one], names) for one, names in above.items()})
