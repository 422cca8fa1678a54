"""Merges, word by word, the changes that two sides made to the same lines.

Both changes are applied if they are far enough apart: at least SEPARATION unchanged words or punctuation
marks are between each change of one side and the next change of the other. They conflict if both changed
brackets or quotes, both changed line breaks or indentation, or both wrote the same word at different
places."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from functools import cache
from itertools import pairwise
from typing import NamedTuple

from localstore.core.diff.alignment import hunks, intern_elements
from localstore.core.diff.sliding import slid

SEPARATION = 2  # unchanged words or marks between two sides' changes
LONGEST = 1 << 18  # bytes of a side above which a stretch is not looked into
CELLS = 4_000_000  # largest rows × columns of tokens that are compared exactly
PAIRED = frozenset("()[]{}\"'`")


class _Change(NamedTuple):
    """A change of one side: the tokens [start, end) of the base were replaced by the tokens `new`. A token is
    a word, white space or a single punctuation mark."""

    start: int
    end: int
    new: tuple[str, ...]


def both_changed(base: bytes, theirs: bytes, mine: bytes) -> bytes | None:
    """The text `base` with the changes that turn it into `theirs` and into `mine`; None if they conflict. All
    three texts are whole lines in UTF-8 (the last line may lack its line ending)."""
    if max(map(len, (base, theirs, mine))) > LONGEST:
        return None
    # The first line's indentation belongs to the line break before it, as that of the others.
    old, *sides = (tokens("\n" + text.decode()) for text in (base, theirs, mine))
    their_changes, my_changes = (_changes(old, side) for side in sides)
    alike = set(their_changes) & set(my_changes)
    their_changes, my_changes = (
        [change for change in side if change not in alike] for side in (their_changes, my_changes)
    )
    if _both_touch_structure(old, their_changes, my_changes) or _both_write_a_word(
        old, their_changes, my_changes
    ):
        return None
    if not _are_apart(old, their_changes, my_changes):
        return None
    text = "".join(_apply_changes(old, sorted([*their_changes, *my_changes, *alike])))
    return text[1:].encode() if text.startswith("\n") else None


def tokens(text: str) -> list[str]:
    """The text split into tokens: line breaks (each with the indentation after it), words, numbers, spaces
    and single punctuation marks. Joined, the tokens are the text again."""
    return _pattern().findall(text)


@cache
def _pattern() -> re.Pattern[str]:
    # Part of a word: letters, digits, underscore, and beyond ASCII everything but spaces and punctuation, so
    # that no accent, vowel sign or part of an emoji is parted from what it belongs to.
    other = r"\s\x00-/:-@\[-^`{-\xa9\xab-\xb1\xb4\xb6-\xb8\xbb-\xbf\xd7\xf7"
    punctuation = r"\u2000-\u200b\u200e-\u206f\u3000-\u3004\u3008-\u3020\u3030\u303d"
    wide = r"\uff01-\uff0f\uff1a-\uff20\uff3b-\uff40\uff5b-\uff65"
    w = f"[^{other}{punctuation}{wide}]"
    number = rf"(?=\d){w}++(?:[.:/+-]{w}++|,\d{{3}}(?!{w}))*+"  # 1.0.2, 2024-01-31, 12:30, 1e-5, 1,000
    name = rf"(?={w}*\d){w}++(?:[.-](?={w}*\d){w}++)*+"  # v1.0.2, parts of an identifier with digits
    return re.compile(rf"\r?\n[ \t]*|[ \t]+|{number}|{name}|{w}+|.", re.DOTALL)


def _changes(old: list[str], new: list[str]) -> list[_Change]:
    a, b = intern_elements(old, new)
    return [_Change(i1, i2, tuple(new[j1:j2])) for i1, i2, j1, j2 in slid(a, b, hunks(a, b, CELLS), None)]


def _both_touch_structure(old: list[str], their_changes: list[_Change], my_changes: list[_Change]) -> bool:
    """Whether both sides change brackets or quotes, or both change line breaks or indentation."""
    touched = [{*_removed_tokens(old, side), *_added_tokens(side)} for side in (their_changes, my_changes)]
    paired = all(not PAIRED.isdisjoint(side) for side in touched)
    return paired or all(any("\n" in token for token in side) for side in touched)


def _both_write_a_word(old: list[str], their_changes: list[_Change], my_changes: list[_Change]) -> bool:
    """Whether both sides add the same word, so that the merged text would contain it twice."""
    gains = [
        Counter(_added_tokens(side)) - Counter(_removed_tokens(old, side))
        for side in (their_changes, my_changes)
    ]
    return any(_is_word(token) for token in gains[0].keys() & gains[1].keys())


def _is_word(token: str) -> bool:
    return token.isalnum() or (len(token) > 1 and not token.isspace())


def _removed_tokens(old: list[str], changes: Iterable[_Change]) -> list[str]:
    return [token for change in changes for token in old[change.start : change.end]]


def _added_tokens(changes: Iterable[_Change]) -> list[str]:
    return [token for change in changes for token in change.new]


def _are_apart(old: list[str], their_changes: list[_Change], my_changes: list[_Change]) -> bool:
    """Whether each change of one side is far enough from each change of the other side: at least SEPARATION
    unchanged words or punctuation marks are in between."""
    tagged = sorted([(change, False) for change in their_changes] + [(change, True) for change in my_changes])
    return all(
        sum(not token.isspace() for token in old[first.end : second.start]) >= SEPARATION
        for (first, is_mine), (second, next_is_mine) in pairwise(tagged)
        if is_mine is not next_is_mine
    )


def _apply_changes(old: list[str], changes: Iterable[_Change]) -> Iterable[str]:
    done = 0
    for change in changes:
        yield from old[done : change.start]
        yield from change.new
        done = change.end
    yield from old[done:]
