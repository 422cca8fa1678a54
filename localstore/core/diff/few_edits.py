"""Finds the changed runs of two long, nearly equal sequences in time proportional to the changes (Myers
1986); equal runs are skipped by comparing slices."""

from __future__ import annotations

from collections.abc import Sequence

from localstore.core.diff.alignment import Hunk, join_touching

MOST_EDITS = 64  # inserted and deleted elements; the time grows with the square
NARROW, WIDE = 16, 4096  # elements compared at once
NOWHERE = -2  # no way came here; one step further is still nowhere


def few_edits(old: Sequence[object], new: Sequence[object]) -> list[Hunk] | None:
    """The changed runs of a shortest edit script from `old` to `new`, ascending; no two of them touch. None
    if it takes more than MOST_EDITS insertions and deletions."""
    if abs(len(old) - len(new)) > MOST_EDITS:
        return None
    furthest = {0: _alike(old, 0, new, 0)}  # diagonal (place in old − place in new) → furthest place in old
    came = [furthest]
    while furthest.get(len(old) - len(new)) != len(old):
        edits = len(came)
        if edits > MOST_EDITS:
            return None
        before, furthest = furthest, {}
        for diagonal in range(-edits, edits + 1, 2):
            i = max(before.get(diagonal - 1, NOWHERE) + 1, before.get(diagonal + 1, NOWHERE))
            j = i - diagonal
            if 0 <= i <= len(old) and 0 <= j <= len(new):
                furthest[diagonal] = i + _alike(old, i, new, j)
        came.append(furthest)
    return _way(came, len(old) - len(new))


def _alike(old: Sequence[object], i: int, new: Sequence[object], j: int) -> int:
    """How many elements from `old[i]` on are equal to those from `new[j]` on."""
    most = min(len(old) - i, len(new) - j)
    done, width = 0, 1
    while done < most:
        if old[i + done : i + done + width] == new[j + done : j + done + width]:
            done += width
            width = min(max(width * 4, NARROW), WIDE)
        elif width == 1:
            return done
        else:
            width = 1 if width <= NARROW else width // 8
    return most


def _way(came: list[dict[int, int]], diagonal: int) -> list[Hunk]:
    """The changed runs along a shortest path from `old` to `new`. The path is followed from its end back to
    its start; each step inserts or deletes one element. It ends on `diagonal`, which is the index in `old`
    minus the index in `new`. `came[n]`: for each diagonal, the furthest index of `old` that n steps reach."""
    steps = []
    for before in reversed(came[:-1]):
        deleted, inserted = before.get(diagonal - 1, NOWHERE) + 1, before.get(diagonal + 1, NOWHERE)
        i = max(deleted, inserted)
        j = i - diagonal
        if inserted >= deleted:
            steps.append(Hunk(i, i, j - 1, j))
            diagonal += 1
        else:
            steps.append(Hunk(i - 1, i, j, j))
            diagonal -= 1
    return join_touching(steps[::-1])
