"""Finds the seal that each line of a file comes from, by comparing each seal with the one before, as `git
blame` does.

The result for each sealed text is stored, so that the next seal needs only one comparison."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import NamedTuple, TypeVar

from localstore.core.diff.line_diff import opcodes

Owner = TypeVar("Owner", str, int)


class LineRange(NamedTuple):
    """Lines `start` to `end` − 1 (from 0) come from seal `seal`."""

    start: int
    end: int
    seal: str


def advance(owners: list[Owner], old: Sequence[bytes], new: Sequence[bytes], seal: Owner) -> list[Owner]:
    """The owner of each line of `new`, which is the seal that the line comes from. `owners`: the owners of
    the lines `old`. Unchanged lines keep their owner; changed lines get the owner `seal`.

    Raises ValueError if `owners` and `old` differ in length."""
    if len(owners) != len(old):
        raise ValueError(f"{len(owners)} owners for {len(old)} lines")
    next_owners: list[Owner] = []
    done = 0
    for hunk in opcodes(old, new):
        next_owners += owners[done : hunk.old_start]
        next_owners += [seal] * (hunk.new_end - hunk.new_start)
        done = hunk.old_end
    return next_owners + owners[done:]


def ranges(owners: Sequence[str]) -> list[LineRange]:
    """Groups lines into ranges: adjacent lines with the same owner are one range. `owners`: for each line,
    the seal that it comes from."""
    runs: list[LineRange] = []
    end = 0
    for owner, group in groupby(owners):
        start, end = end, end + sum(1 for _ in group)
        runs.append(LineRange(start, end, owner))
    return runs
