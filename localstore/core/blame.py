"""Which seal each line came with: carried from seal to seal by line differences, as `git blame` sees it.

Owners are kept beside a sealed text, one per line, so that the next seal costs one difference.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from localstore.core.diff import lines, opcodes


class Range(NamedTuple):
    """Lines `start` … `end` − 1 (from 0) came with seal number `seal`."""

    start: int
    end: int
    seal: int


def begin(text: bytes, seal: int) -> list[int]:
    """Owners of the lines of a file that seal `seal` brought."""
    return [seal] * len(lines(text))


def advance(owners: list[int], old: bytes, new: bytes, seal: int) -> list[int]:
    """Owners of the lines of `new`, given those of `old`: what seal `seal` changed is its own.

    Raises ValueError unless there is one owner per line of `old`.
    """
    before, after = lines(old), lines(new)
    if len(owners) != len(before):
        raise ValueError(f"{len(owners)} owners for {len(before)} lines")
    next_owners: list[int] = []
    done = 0
    for hunk in opcodes(before, after):
        next_owners += owners[done : hunk.old_start]
        next_owners += [seal] * (hunk.new_end - hunk.new_start)
        done = hunk.old_end
    return next_owners + owners[done:]


def history(texts: Iterable[tuple[int, bytes]]) -> list[int]:
    """Owners of the last text of a sequence of (seal, text), oldest first."""
    owners: list[int] = []
    old = b""
    for seal, text in texts:
        owners = advance(owners, old, text, seal)
        old = text
    return owners


def ranges(owners: list[int]) -> list[Range]:
    """Neighbouring lines of one owner, together."""
    found: list[Range] = []
    for place, seal in enumerate(owners):
        if found and found[-1].seal == seal:
            found[-1] = found[-1]._replace(end=place + 1)
        else:
            found.append(Range(place, place + 1, seal))
    return found
