"""Finds the words in which two lines of a comparison differ."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from difflib import SequenceMatcher
from functools import lru_cache

Ranges = tuple[tuple[int, int], ...]
"""(start, end) of pieces of a line, in order."""

LINE_MAX = 400  # characters of a line whose words are compared
WORDS_MAX = 60  # words between the beginnings and ends that are alike; more are taken as one piece
ALIKE, WITHIN = 0.4, 0.75  # the parts of the longer and the shorter line of which both share one at least
_WORD = re.compile(r"\w+|\s+|[^\w\s]")
NOTHING: tuple[Ranges, Ranges] = ((), ())


@lru_cache(maxsize=1024)
def changed_words(old: str, new: str) -> tuple[Ranges, Ranges]:
    """Returns the changed ranges of the old line and the changed ranges of the new line. A range is (start,
    end) in characters. Both are empty if the lines are long or have little in common."""
    if old == new or max(len(old), len(new)) > LINE_MAX:
        return NOTHING
    before, after = _WORD.findall(old), _WORD.findall(new)
    head = _count_shared(before, after)
    tail = _count_shared(before[head:][::-1], after[head:][::-1])
    first, last = before[head : len(before) - tail], after[head : len(after) - tail]
    if len(first) + len(last) > WORDS_MAX:
        pieces = [(0, len(first), 0, len(last))]
    else:
        matcher = SequenceMatcher(None, first, last, autojunk=False)
        pieces = [piece[1:] for piece in matcher.get_opcodes() if piece[0] != "equal"]
    gone = _ranges(before, [(head + start, head + end) for start, end, _, _ in pieces])
    come = _ranges(after, [(head + start, head + end) for _, _, start, end in pieces])
    shared = len(old.strip()) - sum(len(old[start:end].strip()) for start, end in gone)
    shorter, longer = sorted((len(old.strip()), len(new.strip())))
    alike = shared >= ALIKE * longer or (shared and shared >= WITHIN * shorter)
    return (gone, come) if alike else NOTHING


def _count_shared(first: Sequence[str], second: Sequence[str]) -> int:
    """Returns how many words at the beginning of both lines are equal."""
    pairs = zip(first, second, strict=False)
    return next((place for place, (a, b) in enumerate(pairs) if a != b), min(len(first), len(second)))


def _ranges(words: Sequence[str], pieces: Iterable[tuple[int, int]]) -> Ranges:
    """Returns ranges of characters for `pieces`, which are ranges of words. Both kinds are (start, end).
    Pieces with only blanks between them are joined."""
    begins = [0]
    for word in words:
        begins.append(begins[-1] + len(word))
    joined: list[tuple[int, int]] = []
    for start, end in pieces:
        if start == end:
            continue
        if joined and not "".join(words[joined[-1][1] : start]).strip():
            joined[-1] = (joined[-1][0], end)
        else:
            joined.append((start, end))
    return tuple((begins[start], begins[end]) for start, end in joined)
