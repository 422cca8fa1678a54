"""Finds the regions of a text that two sides changed, for a three-way merge."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from heapq import merge as in_order
from typing import NamedTuple

from localstore.core.diff.alignment import Hunk


class Stretch(NamedTuple):
    """A region base[start:end] of the base, with the changes of each side in it; at least one side has a
    change."""

    start: int
    end: int
    theirs: list[Hunk]
    mine: list[Hunk]


def stretches(theirs: Iterable[Hunk], mine: Iterable[Hunk]) -> Iterator[Stretch]:
    """The changed regions of the base, ascending. Changes that overlap or touch are in one region."""
    open_ = None
    for hunk, is_mine in in_order(((hunk, False) for hunk in theirs), ((hunk, True) for hunk in mine)):
        if open_ is None or hunk.old_start > open_.end:
            if open_ is not None:
                yield open_
            open_ = Stretch(hunk.old_start, hunk.old_end, [], [])
        (open_.mine if is_mine else open_.theirs).append(hunk)
        open_ = open_._replace(end=max(open_.end, hunk.old_end))
    if open_ is not None:
        yield open_


def span(stretch: Stretch, changes: list[Hunk]) -> tuple[int, int]:
    """(start, end) of the lines that a stretch has in the text of one side. A stretch is a changed region of
    the base. `changes`: the changes of that side in the stretch."""
    first, last = changes[0], changes[-1]
    return first.new_start - (first.old_start - stretch.start), last.new_end + (stretch.end - last.old_end)
