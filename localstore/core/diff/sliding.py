"""Moves each group of changed lines to where git places it, if several positions are possible.

A group of inserted or deleted lines can move down by one line if its first line equals the line after it. If
possible, a group is moved so that insertions and deletions meet. Otherwise, if the caller asks for it, the
group is moved to where a block of lines begins, judged by the indentation (with the weights of git ≥ 2.14).
Otherwise it is moved as far down as possible."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from localstore.core.diff.alignment import Hunk

MOST_INDENT, MOST_BLANKS, MOST_SLIDING = 200, 20, 100  # where the heuristic stops looking
START_OF_FILE, END_OF_FILE = 1, 21
BLANK_LINE, BLANK_AFTER = -30, 6
DEEPER, DEEPER_AFTER_BLANK = -4, 10
OUTER, OUTER_AFTER_BLANK = 24, 17  # less indented than both neighbours
SHALLOWER, SHALLOWER_AFTER_BLANK = 23, 17
INDENT_WEIGHT = 60


class _Score(NamedTuple):
    indent: int
    penalty: int

    def no_worse_than(self, other: _Score) -> bool:
        order = (self.indent > other.indent) - (self.indent < other.indent)
        return INDENT_WEIGHT * order + self.penalty - other.penalty <= 0


class _Groups:
    """A cursor over the groups of changed lines of one side. There is one group before each unchanged line
    and one after the last; most groups are empty. Both sides have the same unchanged lines, so the n-th group
    of one side corresponds to the n-th group of the other."""

    def __init__(self, lines: Sequence[object], changed: bytearray) -> None:
        self.lines, self.changed = lines, changed
        self.start = self.end = 0
        self._extend_down()

    @property
    def size(self) -> int:
        return self.end - self.start

    def count_unchanged(self) -> int:
        """The number of unchanged lines after the present group of changes."""
        next_changed = self.changed.find(1, self.end)
        return (next_changed if next_changed >= 0 else len(self.lines)) - self.end

    def skip(self, count: int) -> None:
        """Move the cursor over `count` unchanged lines, to the group of changes after them. There is a group,
        often an empty one, between any two unchanged lines."""
        self.start = self.end = self.end + count
        self._extend_down()

    def previous(self) -> None:
        self.start = self.end = self.start - 1
        self._extend_up()

    def slide_down(self) -> bool:
        if self.end == len(self.lines) or self.lines[self.start] != self.lines[self.end]:
            return False
        self.changed[self.start], self.changed[self.end] = 0, 1
        self.start, self.end = self.start + 1, self.end + 1
        self._extend_down()
        return True

    def slide_up(self) -> bool:
        if self.start == 0 or self.lines[self.start - 1] != self.lines[self.end - 1]:
            return False
        self.start, self.end = self.start - 1, self.end - 1
        self.changed[self.start], self.changed[self.end] = 1, 0
        self._extend_up()
        return True

    def _extend_down(self) -> None:
        while self.end < len(self.lines) and self.changed[self.end]:
            self.end += 1

    def _extend_up(self) -> None:
        while self.start and self.changed[self.start - 1]:
            self.start -= 1


def slid(
    old: Sequence[object],
    new: Sequence[object],
    hunks: list[Hunk],
    texts: tuple[Sequence[bytes], Sequence[bytes]] | None,
) -> list[Hunk]:
    """The hunks, each moved to where git would place it. `old`, `new`: the compared lines, or numbers that
    stand for lines.

    `texts`: the lines of both sides. If they are given, the indentation decides between possible
    positions."""
    if not hunks:
        return hunks
    old_changed, new_changed = bytearray(len(old)), bytearray(len(new))
    for i1, i2, j1, j2 in hunks:
        old_changed[i1:i2] = b"\1" * (i2 - i1)
        new_changed[j1:j2] = b"\1" * (j2 - j1)
    old_texts, new_texts = texts or (None, None)
    _compact(_Groups(old, old_changed), _Groups(new, new_changed), old_texts)
    _compact(_Groups(new, new_changed), _Groups(old, old_changed), new_texts)
    return _collect_hunks(_Groups(old, old_changed), _Groups(new, new_changed))


def _collect_hunks(old: _Groups, new: _Groups) -> list[Hunk]:
    hunks = []
    while True:
        if old.size or new.size:
            hunks.append(Hunk(old.start, old.end, new.start, new.end))
        if not _advance(old, new):
            return hunks


def _compact(groups: _Groups, other: _Groups, texts: Sequence[bytes] | None) -> None:
    while True:
        if groups.size:
            _settle(groups, other, texts)
        if not _advance(groups, other):
            return


def _advance(first: _Groups, second: _Groups) -> bool:
    """Move the cursors of both sides to the next place where at least one side has changed lines. Returns
    False at the end."""
    count = min(first.count_unchanged(), second.count_unchanged())
    if not count:
        return False
    first.skip(count)
    second.skip(count)
    return True


def _settle(group: _Groups, other: _Groups, texts: Sequence[bytes] | None) -> None:
    size = 0
    highest, opposite = 0, False
    while size != group.size:  # sliding may join it with its neighbours
        size = group.size
        while group.slide_up():
            other.previous()
        highest, opposite = group.end, other.size > 0
        while group.slide_down():
            other.skip(1)
            opposite = opposite or other.size > 0
    if group.end == highest:
        return
    if opposite:
        while not other.size:
            group.slide_up()
            other.previous()
    elif texts is not None:
        best = _best_end(texts, group, highest)
        while group.end > best:
            group.slide_up()
            other.previous()


def _best_end(texts: Sequence[bytes], group: _Groups, highest: int) -> int:
    first = max(highest, group.end - group.size - 1, group.end - MOST_SLIDING)
    best, best_score = -1, _Score(0, 0)
    for end in range(first, group.end + 1):
        below, above = _split_score(texts, end), _split_score(texts, end - group.size)
        score = _Score(below.indent + above.indent, below.penalty + above.penalty)
        if best < 0 or score.no_worse_than(best_score):
            best, best_score = end, score
    return best


def _split_score(texts: Sequence[bytes], at: int) -> _Score:
    """How well a group of changed lines may begin or end before line `at`, judged by the indentation of the
    lines `texts`. A lower result is better."""
    own = _indent(texts[at]) if at < len(texts) else None
    blanks_above, indent_above = _neighbour(texts, range(at - 1, -1, -1))
    blanks_below, indent_below = _neighbour(texts, range(at + 1, len(texts)))
    penalty = 0
    if indent_above is None and not blanks_above:
        penalty += START_OF_FILE
    if at >= len(texts):
        penalty += END_OF_FILE
    blanks_below = 0 if own is not None else 1 + blanks_below
    blanks = blanks_above + blanks_below
    penalty += BLANK_LINE * blanks + BLANK_AFTER * blanks_below
    indent = indent_below if own is None else own
    if indent is None:
        return _Score(-1, penalty)
    if indent_above is None or indent == indent_above:
        return _Score(indent, penalty)
    if indent > indent_above:
        penalty += DEEPER_AFTER_BLANK if blanks else DEEPER
    elif indent_below is not None and indent_below > indent:
        penalty += OUTER_AFTER_BLANK if blanks else OUTER
    else:
        penalty += SHALLOWER_AFTER_BLANK if blanks else SHALLOWER
    return _Score(indent, penalty)


def _neighbour(texts: Sequence[bytes], places: range) -> tuple[int, int | None]:
    """Looks for the first line that is not blank. `places`: the indices of the lines to look at, in this
    order. Returns (number of blank lines before it, its indentation)."""
    blanks = 0
    for place in places:
        indent = _indent(texts[place])
        if indent is not None:
            return blanks, indent
        blanks += 1
        if blanks == MOST_BLANKS:
            return blanks, 0
    return blanks, None


def _indent(line: bytes) -> int | None:
    """The width of the leading white space in columns, with tabs to multiples of 8; None for a blank line."""
    columns = 0
    for byte in line:
        if byte == 0x20:
            columns += 1
        elif byte == 0x09:
            columns += 8 - columns % 8
        elif byte not in b"\n\r\v\f":
            return min(columns, MOST_INDENT)
        if columns >= MOST_INDENT:
            return MOST_INDENT
    return None
