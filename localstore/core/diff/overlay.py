"""Two changes of one text by characters, where neither takes away what the other touches.

For changes that `text_merge` calls a conflict although nobody replaced anything: two people who write at one
place. Replaced text stays a conflict, since its characters would be mixed.
"""

from __future__ import annotations

from localstore.core.diff.text_edits import Edit, edits


def overlay(base: bytes, theirs: bytes, mine: bytes) -> bytes | None:
    """`base` with the changes of both; what both wrote at one place stands as theirs, then mine. Returns None
    if one side deletes what the other deletes or writes in."""
    there, here = edits(base, theirs), edits(base, mine)
    parts: list[bytes] = []
    at = i = j = 0
    while i < len(there) or j < len(here):
        one = there[i] if i < len(there) else None
        other = here[j] if j < len(here) else None
        if one is not None and other is not None and _clash(one, other):
            if one != other:
                return None
            j += 1  # the same change, once
            continue
        if other is None or (one is not None and one.offset <= other.offset):
            assert one is not None  # noqa: S101 - one of the two is left
            taken = one
            i += 1
        else:
            taken = other
            j += 1
        parts += [base[at : taken.offset], taken.inserted]
        at = taken.offset + taken.deleted
    return b"".join([*parts, base[at:]])


def _clash(one: Edit, other: Edit) -> bool:
    """Whether one deletes what the other deletes, or has inserted text inside or at the edge of it. Two
    insertions at one place do not clash."""
    if one == other:
        return True
    if not one.deleted and not other.deleted:
        return False
    return one.offset <= other.offset + other.deleted and other.offset <= one.offset + one.deleted
