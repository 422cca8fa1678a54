"""Merges two changes of one text word by word, unless one side deletes text that the other changes.

`text_merge` calls some changes a conflict although nothing was replaced: two people inserted text at the same
place. This module merges those. Replaced text stays a conflict."""

from __future__ import annotations

from typing import NamedTuple

from localstore.core.diff.alignment import hunks, intern_elements
from localstore.core.diff.sliding import slid
from localstore.core.diff.text_edits import CELLS
from localstore.core.diff.word_merge import tokens

OVERLAY_BYTES = 1 << 20  # a longer text stays a conflict


class _WordChange(NamedTuple):
    """The words base[start:end] are replaced by the words `new`."""

    start: int
    end: int
    new: tuple[str, ...]


def overlay(base: bytes, theirs: bytes, mine: bytes) -> bytes | None:
    """`base` with the changes of both sides. Where both inserted at one place, theirs come first, then mine.

    Returns None if both sides delete the same text, or if one side inserts into text that the other deletes.
    Also returns None if words of both sides would join into a new word, or if a text is too long or not
    UTF-8."""
    if max(len(base), len(theirs), len(mine)) > OVERLAY_BYTES:
        return None
    try:
        old, their_tokens, my_tokens = (tokens(text.decode()) for text in (base, theirs, mine))
    except UnicodeDecodeError:
        return None
    changes = _combine(_changes(old, their_tokens), _changes(old, my_tokens))
    if changes is None:
        return None
    parts: list[str] = []
    at = 0
    for start, end, new in changes:
        parts += [*old[at:start], *new]
        at = end
    parts += old[at:]
    both = "".join(parts)
    return both.encode() if tokens(both) == parts else None


def _changes(old: list[str], new: list[str]) -> list[_WordChange]:
    a, b = intern_elements(old, new)
    return [_WordChange(i1, i2, tuple(new[j1:j2])) for i1, i2, j1, j2 in slid(a, b, hunks(a, b, CELLS), None)]


def _combine(their_changes: list[_WordChange], my_changes: list[_WordChange]) -> list[_WordChange] | None:
    """The changes of both sides in the order of the text; equal changes count once. None if two changes
    clash."""
    changes: list[_WordChange] = []
    i = j = 0
    while i < len(their_changes) and j < len(my_changes):
        theirs, mine = their_changes[i], my_changes[j]
        if theirs == mine:
            j += 1
        elif _is_clash(theirs, mine):
            return None
        elif theirs.start <= mine.start:
            changes.append(theirs)
            i += 1
        else:
            changes.append(mine)
            j += 1
    return [*changes, *their_changes[i:], *my_changes[j:]]


def _is_clash(first: _WordChange, second: _WordChange) -> bool:
    """Whether the two changes clash: both delete the same text, or one inserts text inside the text that the
    other deletes."""
    # An insertion at the edge of a deletion stands.
    if first.start == first.end or second.start == second.end:
        return first.start < second.start < first.end or second.start < first.start < second.end
    return first.start < second.end and second.start < first.end
