"""Three-way merge by lines with the result and markers of `git merge-file`.

A change of one side is taken. Changes of both sides to the same or touching lines conflict unless they are
equal. A conflict is narrowed to the differing lines; conflicts less than four lines apart, or separated by
punctuation only, are joined.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import Enum
from typing import NamedTuple

from localstore.core.diff.alignment import Hunk
from localstore.core.diff.line_diff import lines, opcodes

JOINED_BELOW = 3  # equal lines between two conflicts that are not worth parting them
MARK = 7


class Merge(NamedTuple):
    """The merged bytes and the number of conflicts marked in them (0: clean)."""

    text: bytes
    conflicts: int


class _Take(Enum):
    OURS, THEIRS, BOTH_ALIKE, CONFLICT = range(4)


class _Region(NamedTuple):
    """A conflict between ours[ours_start:ours_end] and theirs[theirs_start:theirs_end]."""

    take: _Take
    ours_start: int
    ours_end: int
    theirs_start: int
    theirs_end: int


def merge(
    base: bytes, ours: bytes, theirs: bytes, our_label: str = "ours", their_label: str = "theirs"
) -> Merge:
    """Merge two changes of `base`. Conflicts are enclosed in `<<<<<<<`, `=======` and `>>>>>>>` lines with
    the labels and the line endings of the text."""
    if ours == theirs or theirs == base:
        return Merge(ours, 0)
    if ours == base:
        return Merge(theirs, 0)
    base_lines, our_lines, their_lines = lines(base), lines(ours), lines(theirs)
    regions = _regions(base_lines, our_lines, their_lines)
    regions = _joined(our_lines, _narrowed(our_lines, their_lines, regions))
    labels = (our_label, their_label)
    text = b"".join(_written(our_lines, their_lines, regions, labels))
    return Merge(text, sum(region.take is _Take.CONFLICT for region in regions))


def _regions(base: list[bytes], ours: list[bytes], theirs: list[bytes]) -> list[_Region]:
    """The conflicts and merged regions of the two lists of changes."""
    mine, yours = opcodes(base, ours, by_indent=False), opcodes(base, theirs, by_indent=False)
    regions: list[_Region] = []
    i = j = 0
    while i < len(mine) and j < len(yours):
        a, b = mine[i], yours[j]
        if a.old_end < b.old_start:
            _add(regions, _only_ours(a, b.new_start - b.old_start))
            i += 1
        elif b.old_end < a.old_start:
            _add(regions, _only_theirs(b, a.new_start - a.old_start))
            j += 1
        else:
            if not _same_change(a, b, ours, theirs):
                _add(regions, _clash(a, b))
            i, j = i + (b.old_end >= a.old_end), j + (a.old_end >= b.old_end)
    our_shift, their_shift = len(ours) - len(base), len(theirs) - len(base)
    for a in mine[i:]:
        _add(regions, _only_ours(a, their_shift))
    for b in yours[j:]:
        _add(regions, _only_theirs(b, our_shift))
    return regions


def _only_ours(a: Hunk, their_shift: int) -> _Region:
    return _Region(_Take.OURS, a.new_start, a.new_end, a.old_start + their_shift, a.old_end + their_shift)


def _only_theirs(b: Hunk, our_shift: int) -> _Region:
    return _Region(_Take.THEIRS, b.old_start + our_shift, b.old_end + our_shift, b.new_start, b.new_end)


def _same_change(a: Hunk, b: Hunk, ours: list[bytes], theirs: list[bytes]) -> bool:
    same_place = a.old_start == b.old_start and a.old_end == b.old_end
    return same_place and ours[a.new_start : a.new_end] == theirs[b.new_start : b.new_end]


def _clash(a: Hunk, b: Hunk) -> _Region:
    """Both changes, each extended over the unchanged lines that the other one touches."""
    start, end = min(a.old_start, b.old_start), max(a.old_end, b.old_end)
    return _Region(
        _Take.CONFLICT,
        a.new_start - (a.old_start - start),
        a.new_end + (end - a.old_end),
        b.new_start - (b.old_start - start),
        b.new_end + (end - b.old_end),
    )


def _add(regions: list[_Region], region: _Region) -> None:
    """Append a region; if it touches the previous one, both become one conflict."""
    last = regions[-1] if regions else None
    if last and (region.ours_start <= last.ours_end or region.theirs_start <= last.theirs_end):
        take = last.take if last.take is region.take else _Take.CONFLICT
        regions[-1] = _Region(take, last.ours_start, region.ours_end, last.theirs_start, region.theirs_end)
    else:
        regions.append(region)


def _narrowed(ours: list[bytes], theirs: list[bytes], regions: list[_Region]) -> Iterable[_Region]:
    """The conflicts reduced to the lines in which the sides differ."""
    for region in regions:
        take, i1, i2, j1, j2 = region
        if take is not _Take.CONFLICT or i1 == i2 or j1 == j2:
            yield region
            continue
        differing = opcodes(ours[i1:i2], theirs[j1:j2], by_indent=False)
        if not differing:
            yield region._replace(take=_Take.BOTH_ALIKE)
        for a1, a2, b1, b2 in differing:
            yield _Region(_Take.CONFLICT, i1 + a1, i1 + a2, j1 + b1, j1 + b2)


def _joined(ours: list[bytes], regions: Iterable[_Region]) -> list[_Region]:
    """The conflicts, those close together joined."""
    joined: list[_Region] = []
    for region in regions:
        last = joined[-1] if joined else None
        if last and last.take is region.take is _Take.CONFLICT and _hardly_apart(ours, last, region):
            joined[-1] = last._replace(ours_end=region.ours_end, theirs_end=region.theirs_end)
        else:
            joined.append(region)
    return joined


def _hardly_apart(ours: list[bytes], first: _Region, second: _Region) -> bool:
    between = ours[first.ours_end : second.ours_start]
    return len(between) <= JOINED_BELOW or not any(
        chr(byte).isalnum() for line in between for byte in line if byte < 0x80
    )


def _written(
    ours: list[bytes], theirs: list[bytes], regions: list[_Region], labels: tuple[str, str]
) -> Iterable[bytes]:
    done = 0
    for take, i1, i2, j1, j2 in regions:
        yield from ours[done:i1]
        if take is _Take.CONFLICT:
            yield from _marked(ours, theirs, (i1, i2, j1, j2), labels)
        else:
            yield from theirs[j1:j2] if take is _Take.THEIRS else ours[i1:i2]
        done = i2
    yield from ours[done:]


def _marked(
    ours: list[bytes], theirs: list[bytes], span: tuple[int, int, int, int], labels: tuple[str, str]
) -> Iterable[bytes]:
    i1, i2, j1, j2 = span
    ending = _line_ending(ours, theirs, i1, j1)
    yield b"<" * MARK + b" " + labels[0].encode() + ending
    yield from _ended(ours[i1:i2], ending)
    yield b"=" * MARK + ending
    yield from _ended(theirs[j1:j2], ending)
    yield b">" * MARK + b" " + labels[1].encode() + ending


def _ended(some: Sequence[bytes], ending: bytes) -> Iterable[bytes]:
    for line in some:
        yield line if line.endswith(b"\n") else line + ending


def _line_ending(ours: list[bytes], theirs: list[bytes], i: int, j: int) -> bytes:
    """CRLF if the lines before the conflict (at the top of the file: in it) have it."""
    near = [side[max(at - 1, 0)] for side, at in ((ours, i), (theirs, j)) if side]
    return b"\r\n" if near and all(line.endswith(b"\r\n") for line in near) else b"\n"
