"""A list in which what matches best comes first while words are typed."""

from __future__ import annotations

import re
from collections.abc import Hashable, Mapping, Sequence
from types import MappingProxyType

from tui.widgets.lines import FilteredRows, Lines, Rows

RANKED = 2_000  # rows that are put in order; of more matches a single letter was typed
NAMED = "\n"  # in the text of a row: ends its name, before other words by which it is found
Nearness = tuple[int, bool]  # a rank, and whether the row comes after equals with the same one
WHOLE, BEGINS, ELSEWHERE, INSIDE, INSIDE_ELSEWHERE = range(5)


class Best(FilteredRows):
    """The rows that a search has found, the best first."""

    def place_of(self, key: Hashable) -> int | None:
        return next((at for at in range(len(self)) if self[at].key == key), None)


class Ranked(Lines):
    """A list from which typed words choose rows. A name that is what was typed comes first, then rows whose
    name has a word as it was typed, then rows with a word that begins so, and rows with the letters inside a
    word last. Among equals, what was used last comes first, then a name that has the words side by side, and
    then one that begins with them. `used`: keys of rows, the one that was used last first. `nearness`: ranks
    of rows by their key, with which a list prefers what is about the place where the user is: of rows that
    have all words, the one with the smallest rank comes first, whether the words are whole or begun."""

    used: Sequence[Hashable] = ()
    nearness: Mapping[Hashable, Nearness] = MappingProxyType({})

    def filter(self, text: str) -> None:
        super().filter(text)
        if text.strip() and self.rows:
            self.go(0)  # the best, not what the cursor was on

    def _in_order(self, places: Sequence[int]) -> Rows:
        if len(places) > RANKED:
            return super()._in_order(places)
        typed, texts = self._filter.casefold().strip(), self._sought
        recent = {key: at for at, key in enumerate(self.used)}

        def order(at: int) -> tuple[int, int, int, int, tuple[int, bool, bool], int]:
            key = self._all[at].key
            last = recent.get(key, len(recent)) if recent else 0
            cost, *others = distance(texts[at], typed, last)
            near, ends = self.nearness.get(key, (0, False))
            worst = _worst(texts[at], typed) if self.nearness and cost >= 0 else cost
            return worst, near, cost, int(ends), (others[0], bool(others[1]), bool(others[2])), at

        return Best(self._all, sorted(places, key=order))


def distance(text: str, typed: str, last: int = 0) -> tuple[int, int, bool, bool]:
    """Returns how badly a text matches the typed words, which it has: the smallest is the best. Both are in
    lower case. `last`: how many others were used later."""
    name, _, others = text.partition(NAMED)
    cost = -1 if name == typed else sum(_distance(name, others, word) for word in typed.split())
    apart = _place(name, typed) not in (WHOLE, BEGINS)
    return cost, last, apart, not name.startswith(typed)


def _worst(text: str, typed: str) -> int:
    """Returns how badly a text matches that typed word which it matches worst. It does not matter whether a
    name has a word as a whole, or one that begins with it."""
    name, _, others = text.partition(NAMED)
    return max((max(BEGINS, _distance(name, others, word)) for word in typed.split()), default=BEGINS)


def _distance(name: str, others: str, word: str) -> int:
    in_name, in_others = _place(name, word), _place(others, word)
    if in_name in (WHOLE, BEGINS):
        return in_name
    if in_others in (WHOLE, BEGINS):
        return ELSEWHERE
    return INSIDE if in_name == INSIDE else INSIDE_ELSEWHERE


def _place(text: str, word: str) -> int:
    """Returns whether a text has the word as a whole, or a word that begins with it, or its letters inside a
    word. Returns INSIDE_ELSEWHERE if it has none of them."""
    if word not in text:
        return INSIDE_ELSEWHERE
    begins = rf"(?<!\w){re.escape(word)}"
    if re.search(rf"{begins}(?!\w)", text):
        return WHOLE
    return BEGINS if re.search(begins, text) else INSIDE
