"""Finds the changed lines of two texts exactly as git does.

`alignment.hunks` finds a shortest difference, but git's library xdiff does not always. It leaves out lines
that occur too often, searches from both ends (Myers 1986), and stops looking for the shortest script when it
gets long. So it finds other changes in some texts, and a merge can be clean for git and a conflict otherwise.
The constants are git's."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from localstore.core.diff.alignment import Hunk, intern_elements
from localstore.core.diff.line_diff import opcodes
from localstore.core.diff.sliding import slid

FREQUENT = 1024  # a line that occurs more often is always a frequent one
WINDOW = 100  # lines looked at around a frequent one
RUN = 4  # frequent lines are left out where lines without a match are at least this many times as many
SNAKE = 20  # equal lines in a row that make a good place to part
COST_MIN = 256  # edits from which on git gives up looking for the shortest way
INTERESTING = 4  # lines passed for each edit that make a place to part interesting
FAR = 1 << 62
FREQUENT_COSTS = 4  # steps that a look around a frequent line counts for
BUDGET = 1_000_000  # steps of looking for git's way, less than a second

NONE, SOME, MANY = range(3)  # how often a line occurs in the other text


class OverBudget(Exception):
    """The search needs more steps than it was allowed."""


class _Effort:
    """Counts down the steps that a search may still take. Raises OverBudget when they are used up."""

    def __init__(self, budget: int) -> None:
        self._left = budget

    def spend(self, steps: int) -> None:
        self._left -= steps
        if self._left < 0:
            raise OverBudget


class _Box(NamedTuple):
    """A box: a pair of runs, old[i1:i2] and new[j1:j2], that are compared with each other. Lines that git
    ignores are not in it. `minimal`: find the shortest edit script, however long the search takes."""

    i1: int
    i2: int
    j1: int
    j2: int
    minimal: bool


def as_git(old: Sequence[bytes], new: Sequence[bytes]) -> list[Hunk]:
    """The changed runs of lines that `git merge-file` finds. If the search takes too long, the runs that
    `opcodes` finds."""
    a, b = intern_elements(old, new)
    try:
        return slid(a, b, git_hunks(a, b, BUDGET), None)
    except OverBudget:
        return opcodes(old, new, by_indent=False)


def git_hunks(old: Sequence[int], new: Sequence[int], budget: int) -> list[Hunk]:
    """The changed runs of two sequences of numbers that stand for lines (equal numbers for equal lines). The
    caller still has to move them to git's positions (`sliding.slid`).

    Raises OverBudget after about `budget` steps; a million steps take less than a second."""
    start, end = common_ends(old, new)
    effort = _Effort(budget)
    effort.spend(len(old) + len(new) - 2 * (start + end))
    kept_old, old_changed = _select_compared(old, new, start, end, effort)
    kept_new, new_changed = _select_compared(new, old, start, end, effort)
    search = _Search([old[i] for i in kept_old], [new[j] for j in kept_new], effort)
    search.run()
    for places, flags, changed in (
        (kept_old, search.old_changed, old_changed),
        (kept_new, search.new_changed, new_changed),
    ):
        for place, flag in zip(places, flags, strict=True):
            changed[place] = flag
    return _collect_hunks(old_changed, new_changed)


def common_ends(old: Sequence[object], new: Sequence[object]) -> tuple[int, int]:
    """(number of equal lines at the start, number of equal lines at the end after these)."""
    most = min(len(old), len(new))
    start = next((n for n in range(most) if old[n] != new[n]), most)
    rest = most - start
    end = next((n for n in range(rest) if old[-1 - n] != new[-1 - n]), rest)
    return start, end


def _select_compared(
    side: Sequence[int], other: Sequence[int], start: int, end: int, effort: _Effort
) -> tuple[list[int], bytearray]:
    """Selects the lines of the text `side` that are compared with the text `other`. `start` and `end`: how
    many lines at the start and at the end are equal in both texts. Returns (indices of the lines to compare,
    a flag for each line of `side`). A line that is not compared has the flag 1, as if it were changed."""
    counts = Counter(other)
    many = min(_rough_root(len(side)), FREQUENT)
    matches = bytearray(len(side))
    for at in range(start, len(side) - end):
        count = counts[side[at]]
        matches[at] = NONE if not count else MANY if count >= many else SOME
    compared, changed = [], bytearray(len(side))
    for at in range(start, len(side) - end):
        stays = matches[at] == SOME
        if matches[at] == MANY:
            effort.spend(FREQUENT_COSTS)
            stays = not _is_left_out(matches, at, start, len(side) - end)
        if stays:
            compared.append(at)
        else:
            changed[at] = 1
    return compared, changed


def _rough_root(number: int) -> int:
    root = 1
    while number > 0:
        root, number = root * 2, number >> 2
    return root


def _is_left_out(matches: bytearray, at: int, start: int, end: int) -> bool:
    """Whether git leaves the line with index `at` out of the comparison. The line occurs often in the other
    text; git leaves it out if most of the lines around it do not occur there. `matches`: for each line,
    whether it occurs in the other text never, sometimes or often. `start`, `end`: the range of the lines to
    look at."""
    before = matches[max(start, at - WINDOW) : at]
    before = before[before.rfind(SOME) + 1 :]
    none_before = before.count(NONE)
    if not none_before:
        return False
    behind = matches[at + 1 : min(end, at + WINDOW + 1)]
    behind = behind.partition(bytes([SOME]))[0]
    none_behind = behind.count(NONE)
    if not none_behind:
        return False
    frequent = len(before) + len(behind) - none_before - none_behind + 2
    return frequent * RUN < frequent + none_before + none_behind


class _Search:
    """Finds the changed lines of two sequences. `run` sets a flag for each changed line in `old_changed` and
    `new_changed`."""

    def __init__(self, old: list[int], new: list[int], effort: _Effort) -> None:
        self.old, self.new, self.effort = old, new, effort
        self.old_changed, self.new_changed = bytearray(len(old)), bytearray(len(new))
        diagonals = len(old) + len(new) + 3
        self.most_cost = max(_rough_root(diagonals), COST_MIN)
        self.shift = len(new) + 1
        self.forward, self.backward = [0] * (diagonals + 1), [0] * (diagonals + 1)

    def run(self) -> None:
        todo = [_Box(0, len(self.old), 0, len(self.new), False)]
        while todo:
            i1, i2, j1, j2, minimal = todo.pop()
            while i1 < i2 and j1 < j2 and self.old[i1] == self.new[j1]:
                i1, j1 = i1 + 1, j1 + 1
            while i1 < i2 and j1 < j2 and self.old[i2 - 1] == self.new[j2 - 1]:
                i2, j2 = i2 - 1, j2 - 1
            if i1 == i2 or j1 == j2:
                self.old_changed[i1:i2] = b"\1" * (i2 - i1)
                self.new_changed[j1:j2] = b"\1" * (j2 - j1)
            else:
                i, j, low, high = self._find_split(_Box(i1, i2, j1, j2, minimal))
                todo += [_Box(i, i2, j, j2, high), _Box(i1, i, j1, j, low)]

    def _find_split(self, box: _Box) -> tuple[int, int, bool, bool]:
        """The point (i, j) at which to split the box (the two runs that are compared), as (i, j, minimal
        before, minimal after). The two flags say whether the part before and the part after the point need
        the shortest edit script."""
        walk = _Walk(self, box)
        cost = 0
        while True:
            cost += 1
            met, snake = walk.on()
            if met is not None:
                return *met, True, True
            if box.minimal:
                continue
            if snake and cost > COST_MIN and (point := walk.interesting(cost)) is not None:
                return point
            if cost >= self.most_cost:
                return walk.furthest()


class _Walk:
    """Searches a box (two runs that are compared) for edit paths, from its start forward and from its end
    backward. Each step adds one edit to all paths. A diagonal is i − j, the index in the old text minus the
    index in the new one. `forward`, `backward`: the furthest i that a path has reached on each diagonal."""

    def __init__(self, search: _Search, box: _Box) -> None:
        self.search, self.box = search, box
        self.shift = search.shift
        self.forward, self.backward = search.forward, search.backward
        self.least, self.most = box.i1 - box.j2, box.i2 - box.j1
        self.start, self.end = box.i1 - box.j1, box.i2 - box.j2
        self.low = self.high = self.start
        self.back_low = self.back_high = self.end
        self.odd = (self.start - self.end) % 2 == 1
        self.forward[self.start + self.shift] = box.i1
        self.backward[self.end + self.shift] = box.i2

    def on(self) -> tuple[tuple[int, int] | None, bool]:
        """Extend all forward and backward paths by one edit. Returns (point, snake). `point`: the place (i,
        j) where a forward path meets a backward path, None if none meet. `snake`: whether a path passed more
        than SNAKE equal lines in a row."""
        self.search.effort.spend(self.high - self.low + self.back_high - self.back_low + 2)
        met, snake = self._forward()
        if met is not None:
            return met, snake
        met, back_snake = self._backward()
        return met, snake or back_snake

    def _forward(self) -> tuple[tuple[int, int] | None, bool]:
        reach, shift, old, new = self.forward, self.shift, self.search.old, self.search.new
        _, i2, _, j2, _ = self.box
        self.low, self.high = self._wider(self.low, self.high, reach, -1)
        snake = False
        for d in range(self.high, self.low - 1, -2):
            at = d + shift
            i = reach[at - 1] + 1 if reach[at - 1] >= reach[at + 1] else reach[at + 1]
            before, j = i, i - d
            while i < i2 and j < j2 and old[i] == new[j]:
                i, j = i + 1, j + 1
            snake = snake or i - before > SNAKE
            self.search.effort.spend(i - before)
            reach[at] = i
            if self.odd and self.back_low <= d <= self.back_high and self.backward[at] <= i:
                return (i, j), snake
        return None, snake

    def _backward(self) -> tuple[tuple[int, int] | None, bool]:
        reach, shift, old, new = self.backward, self.shift, self.search.old, self.search.new
        i1, _, j1, _, _ = self.box
        self.back_low, self.back_high = self._wider(self.back_low, self.back_high, reach, FAR)
        snake = False
        for d in range(self.back_high, self.back_low - 1, -2):
            at = d + shift
            i = reach[at - 1] if reach[at - 1] < reach[at + 1] else reach[at + 1] - 1
            before, j = i, i - d
            while i > i1 and j > j1 and old[i - 1] == new[j - 1]:
                i, j = i - 1, j - 1
            snake = snake or before - i > SNAKE
            self.search.effort.spend(before - i)
            reach[at] = i
            if not self.odd and self.low <= d <= self.high and i <= self.forward[at]:
                return (i, j), snake
        return None, snake

    def _wider(self, low: int, high: int, reach: list[int], unreached: int) -> tuple[int, int]:
        """The range of diagonals (values of i − j) that paths can reach with one more edit inside the box, as
        (lowest, highest). `low`, `high`: the present range. `reach`: the furthest i on each diagonal; a
        diagonal that no path has reached gets the value `unreached`."""
        if low > self.least:
            low -= 1
            reach[low - 1 + self.shift] = unreached
        else:
            low += 1
        if high < self.most:
            high += 1
            reach[high + 1 + self.shift] = unreached
        else:
            high -= 1
        return low, high

    def interesting(self, cost: int) -> tuple[int, int, bool, bool] | None:
        """A good point at which to split the box, in the form of the result of `_find_split`; None if there
        is none. A point is good if a path has come far to it with few edits, and SNAKE equal lines adjoin it.
        `cost`: how many edits the paths have."""
        old, new = self.search.old, self.search.new
        i1, i2, j1, j2, _ = self.box
        best, point = INTERESTING * cost, None
        for d in range(self.high, self.low - 1, -2):
            i = self.forward[d + self.shift]
            j = i - d
            value = i - i1 + j - j1 - abs(d - self.start)
            inside = i1 + SNAKE <= i < i2 and j1 + SNAKE <= j < j2
            if value > best and inside and old[i - SNAKE : i] == new[j - SNAKE : j]:
                best, point = value, (i, j, True, False)
        if point is not None:
            return point
        for d in range(self.back_high, self.back_low - 1, -2):
            i = self.backward[d + self.shift]
            j = i - d
            value = i2 - i + j2 - j - abs(d - self.end)
            inside = i1 < i <= i2 - SNAKE and j1 < j <= j2 - SNAKE
            if value > best and inside and old[i : i + SNAKE] == new[j : j + SNAKE]:
                best, point = value, (i, j, False, True)
        return point

    def furthest(self) -> tuple[int, int, bool, bool]:
        """The point that a path has reached furthest from its start, in the form of the result of
        `_find_split`. The box is split there if no better point was found."""
        i1, i2, j1, j2, _ = self.box
        ways = []
        for d in range(self.high, self.low - 1, -2):
            i = min(self.forward[d + self.shift], i2, j2 + d)
            ways.append((2 * i - d, i))
        reached, i = max(ways, key=lambda way: way[0])
        back = []
        for d in range(self.back_high, self.back_low - 1, -2):
            at = max(self.backward[d + self.shift], i1, j1 + d)
            back.append((2 * at - d, at))
        back_reached, at = min(back, key=lambda way: way[0])
        if i2 + j2 - back_reached < reached - (i1 + j1):
            return i, reached - i, True, False
        return at, back_reached - at, False, True


def _collect_hunks(old_changed: bytearray, new_changed: bytearray) -> list[Hunk]:
    """The changed runs of two texts, from a flag for each line (1 if it is changed). The unchanged lines of
    both texts are paired in order."""
    hunks = []
    i = j = 0
    while i < len(old_changed) or j < len(new_changed):
        i_end, j_end = _run_end(old_changed, i), _run_end(new_changed, j)
        if i_end > i or j_end > j:
            hunks.append(Hunk(i, i_end, j, j_end))
        step = _count_unchanged(old_changed, i_end, new_changed, j_end)
        i, j = i_end + step, j_end + step
    return hunks


def _run_end(changed: bytearray, at: int) -> int:
    end = changed.find(0, at)
    return len(changed) if end < 0 else end


def _count_unchanged(old_changed: bytearray, i: int, new_changed: bytearray, j: int) -> int:
    """How many lines are unchanged on both sides, counted from line `i` of the old and line `j` of the new
    side."""
    ends = []
    for changed, at in ((old_changed, i), (new_changed, j)):
        end = changed.find(1, at)
        ends.append((len(changed) if end < 0 else end) - at)
    return min(ends)
