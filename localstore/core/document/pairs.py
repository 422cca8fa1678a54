"""Compares two versions of a list, and finds which new items are edited versions of old items. The work is
bounded."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from localstore.core.document.content import encode

CELLS = 400  # pairs of old and new items that are compared
ALIKE = 0.5  # share of the smaller item's parts that both must have
SAME_ID = 2.0  # of objects whose `id` is equal: more than any likeness


def pairs(old: Sequence[Any], new: Sequence[Any]) -> list[tuple[int, int]]:
    """Pairs (index in old, index in new) of items of the same kind, ascending in both. Two items are paired
    if they are so similar that one can be an edited version of the other. In a run that is too long to
    compare, items at the same index are paired."""
    if len(old) == len(new) == 1 or (len(old) == len(new) and len(old) * len(new) > CELLS):
        return [(at, at) for at in range(len(old)) if _kind(old[at]) and _kind(old[at]) == _kind(new[at])]
    if not old or not new or len(old) * len(new) > CELLS:
        return []
    old_parts, new_parts = [_parts(item) for item in old], [_parts(item) for item in new]
    scores = [
        [_likeness(item, mine, other, theirs) for other, theirs in zip(new, new_parts, strict=True)]
        for item, mine in zip(old, old_parts, strict=True)
    ]
    return _best(scores)


def _kind(item: Any) -> type | None:
    """The kind of an item that can be edited; None for numbers and other plain values."""
    return type(item) if isinstance(item, (dict, list, str)) else None


def _parts(item: Any) -> frozenset[Any]:
    if isinstance(item, dict):
        return frozenset((key, encode(value)) for key, value in item.items())
    if isinstance(item, list):
        return frozenset(map(encode, item))
    return frozenset(item.split()) if isinstance(item, str) else frozenset()


def _likeness(old: Any, mine: frozenset[Any], new: Any, theirs: frozenset[Any]) -> float:
    if _kind(old) is None or _kind(old) != _kind(new):
        return 0.0
    if isinstance(old, dict) and "id" in old and "id" in new:
        return SAME_ID if encode(old["id"]) == encode(new["id"]) else 0.0
    smaller = min(len(mine), len(theirs))
    share = len(mine & theirs) / smaller if smaller else 0.0
    return share if share >= ALIKE else 0.0


def _best(scores: list[list[float]]) -> list[tuple[int, int]]:
    """Pairs (row, column), ascending in both, with the highest sum of scores."""
    rows, columns = len(scores), len(scores[0])
    best = [[0.0] * (columns + 1) for _ in range(rows + 1)]  # of the items from (row, column) on
    for row in reversed(range(rows)):
        for column in reversed(range(columns)):
            paired = scores[row][column] + best[row + 1][column + 1] if scores[row][column] else 0.0
            best[row][column] = max(paired, best[row + 1][column], best[row][column + 1])
    chosen, row, column = [], 0, 0
    while row < rows and column < columns:
        if best[row][column] == best[row + 1][column]:
            row += 1
        elif best[row][column] == best[row][column + 1]:
            column += 1
        else:
            chosen.append((row, column))
            row, column = row + 1, column + 1
    return chosen
