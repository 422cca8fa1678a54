"""Three-way merge of texts by lines, with the outcome of `git merge`: the same text, or a conflict.

Proposals are merged by this rule, because people compare the result with git's. Captured edits are merged by
`text_merge`, which also compares words.
"""

from __future__ import annotations

from localstore.core.diff.histogram import as_git_merges
from localstore.core.diff.line_diff import lines
from localstore.core.diff.stretches import span, stretches


def merge_lines(base: bytes, ours: bytes, theirs: bytes) -> bytes | None:
    """Merges `ours` and `theirs`, two changed versions of `base`. Returns the merged text; None if both
    changed overlapping or adjacent lines in different ways.

    Swapping the sides changes nothing. An absent base is b"".
    """
    if ours == theirs or theirs == base:
        return ours
    if ours == base:
        return theirs
    old, our_lines, their_lines = lines(base), lines(ours), lines(theirs)
    pieces: list[bytes] = []
    done = 0
    for stretch in stretches(as_git_merges(old, our_lines), as_git_merges(old, their_lines)):
        pieces += old[done : stretch.start]
        done = stretch.end
        mine = our_lines[slice(*span(stretch, stretch.theirs))] if stretch.theirs else None
        other = their_lines[slice(*span(stretch, stretch.mine))] if stretch.mine else None
        if mine is not None and other is not None and mine != other:
            return None
        pieces += mine if mine is not None else other or []
    return b"".join(pieces + old[done:])
