"""Finds the changed lines of two texts as `git merge` does, which differs from `git diff`.

`git merge` compares by histogram: it splits the texts at the longest common run that contains the rarest
line, and repeats this on both sides of the run. If all common lines occur often, it compares like
`git_alignment`. The constants are git's."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import takewhile
from operator import eq, truth
from typing import NamedTuple

from localstore.core.diff.alignment import Hunk, intern_elements
from localstore.core.diff.git_alignment import BUDGET, OverBudget, git_hunks
from localstore.core.diff.line_diff import opcodes
from localstore.core.diff.sliding import slid

LOOKED_AT = 8  # lines of each end of a text, for one that it has once
CHAIN_MAX = 64  # a line that occurs more often in the old text is not a place to part


class _Region(NamedTuple):
    """A pair of runs, old[i1:i2] and new[j1:j2]."""

    i1: int
    i2: int
    j1: int
    j2: int


class _StepBudget:
    """The steps that a search may still take; raises OverBudget when they are used up."""

    def __init__(self, budget: int) -> None:
        self.left = budget

    def spend(self, steps: int) -> None:
        self.left -= steps
        if self.left < 0:
            raise OverBudget


class _Found(NamedTuple):
    """The result of `_best_run`. `run`: the best common run of lines, None if there is none. `rare`: False if
    the texts have common lines, but all of these occur too often to split the texts there."""

    run: _Region | None
    rare: bool


def as_git_merges(old: Sequence[bytes], new: Sequence[bytes]) -> list[Hunk]:
    """The changed runs of lines that `git merge` finds. If the search takes too long, the runs that `opcodes`
    finds."""
    if (only := _one_run(old, new)) is not None:
        # Lines that are nowhere else hold a run in its place.
        return [only] if only.new_start < only.new_end else slid(old, new, [only], None)
    a, b = intern_elements(old, new)
    try:
        return slid(a, b, histogram_hunks(a, b, BUDGET), None)
    except OverBudget:
        return opcodes(old, new, by_indent=False)


def _one_run(old: Sequence[bytes], new: Sequence[bytes]) -> Hunk | None:
    """The changed run of two texts that differ at one place, found by a shortcut, as in most edits. It is
    what is left between the equal lines at the start and at the end. Returns None if `histogram_hunks` might
    find another result.

    Both find the same if three things hold: no new line occurs in the old text, the equal lines fit only at
    these ends, and each end has a line that occurs once in the old text."""
    start = _equal(old, new)
    end = min(_equal(reversed(old), reversed(new)), min(len(old), len(new)) - start)
    came = new[start : len(new) - end]
    if not set(came).isdisjoint(old):
        return None
    if not came and (start == len(old) or (start and old[start - 1] == old[len(old) - end - 1])):
        return None  # equal, or what went could as well have gone further up
    if not _has_rare(old, range(start)) or not _has_rare(old, range(len(old) - end, len(old))):
        return None
    return Hunk(start, len(old) - end, start, len(new) - end)


def _equal(first: Iterable[bytes], second: Iterable[bytes]) -> int:
    """How many lines are equal at the start of `first` and `second`."""
    return len(list(takewhile(truth, map(eq, first, second))))


def _has_rare(old: Sequence[bytes], part: range) -> bool:
    """Whether one of the first LOOKED_AT lines of `part` occurs only once in `old`. `part`: a range of lines
    of `old`; True if it is empty."""
    return not part or any(old.count(old[at]) == 1 for at in part[:LOOKED_AT])


def histogram_hunks(old: Sequence[int], new: Sequence[int], budget: int) -> list[Hunk]:
    """The changed runs of two sequences of numbers that stand for lines. The caller still has to move them to
    git's positions (`sliding.slid`). Raises OverBudget after about `budget` steps."""
    effort = _StepBudget(budget)
    hunks: list[Hunk] = []
    stack = [_Region(0, len(old), 0, len(new))]
    while stack:
        box = stack.pop()
        i1, i2, j1, j2 = box
        if i1 == i2 or j1 == j2:
            if i1 != i2 or j1 != j2:
                hunks.append(Hunk(*box))
            continue
        if old[i1:i2] == new[j1:j2]:  # what the search below would find, in one step
            effort.spend(i2 - i1)
            continue
        run, rare = _best_run(old, new, box, effort)
        if not rare:
            inner = git_hunks(old[i1:i2], new[j1:j2], effort.left)
            hunks += [Hunk(a + i1, b + i1, c + j1, d + j1) for a, b, c, d in inner]
        elif run is None:
            hunks.append(Hunk(*box))
        else:
            stack += [_Region(run.i2, i2, run.j2, j2), _Region(i1, run.i1, j1, run.j1)]
    return _glue(hunks)


def _best_run(old: Sequence[int], new: Sequence[int], box: _Region, effort: _StepBudget) -> _Found:
    """The best run of lines at which to split the region `box`. The run must occur on both sides of the
    region. As in git's find_lcs, long runs are preferred, and runs with a line that is rare in the old
    text."""
    i1, i2, j1, j2 = box
    effort.spend(i2 - i1 + j2 - j1)
    places: dict[int, list[int]] = {}
    for at in range(i1, i2):
        places.setdefault(old[at], []).append(at)
    best, fewest, common = None, CHAIN_MAX + 1, False
    at = j1
    while at < j2:
        starts = places.get(new[at])
        behind = at + 1
        if starts is None or len(starts) > fewest:
            common = common or starts is not None
            at = behind
            continue
        common = True
        passed = -1  # old lines up to here were in the last run
        for start in starts:
            if start <= passed:
                continue
            a, b, c, d, count = start, start, at, at, len(starts)
            while a > i1 and c > j1 and old[a - 1] == new[c - 1]:
                a, c = a - 1, c - 1
                count = min(count, len(places[old[a]])) if count > 1 else count
            while b + 1 < i2 and d + 1 < j2 and old[b + 1] == new[d + 1]:
                b, d = b + 1, d + 1
                count = min(count, len(places[old[b]])) if count > 1 else count
            effort.spend(b - a + 1)
            behind = max(behind, d + 1)
            longest = best.i2 - best.i1 - 1 if best is not None else 0
            if longest < b - a or count < fewest:
                best, fewest = _Region(a, b + 1, c, d + 1), count
            passed = b
        at = behind
    return _Found(best, not (common and fewest > CHAIN_MAX))


def _glue(hunks: list[Hunk]) -> list[Hunk]:
    """The hunks in ascending order; hunks that touch on both sides are joined."""
    joined: list[Hunk] = []
    for hunk in sorted(hunks):
        last = joined[-1] if joined else None
        if last is not None and (last.old_end, last.new_end) == (hunk.old_start, hunk.new_start):
            joined[-1] = Hunk(last.old_start, hunk.old_end, last.new_start, hunk.new_end)
        else:
            joined.append(hunk)
    return joined
