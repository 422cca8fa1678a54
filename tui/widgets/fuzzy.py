"""A list of paths that is filtered by letters. A path matches if it contains the typed letters in order, as
`shape.py` contains `shp`. The best match comes first."""

from __future__ import annotations

import re
import time
from collections.abc import Hashable, Iterator, Sequence
from functools import cache

from tui.widgets.lines import Lines, Rows, texts_of
from tui.widgets.ranked import Best

SLICE = 0.008  # seconds of work between two keys
MADE = 8192  # texts that are made at once
EACH = 64  # paths between two looks at the clock
STARTS = "/_- "  # what a word begins after; endings of files count for no word
RUN, STEP, PREFIX, START = 20, 10, 4, 6


class Fuzzy(Lines):
    """A list from which letters choose rows: those that contain the typed letters in this order. A long list
    is searched in slices of time, so that keys are handled in between. Enter and the arrow keys wait for the
    end of the search."""

    _search: Iterator[list[int] | None] | None = None
    _done: tuple[str, Sequence[int]] = ("", ())  # the last search that ended, and what it found

    def show(self, rows: Rows, cursor: Hashable | None = None) -> None:
        self._search, self._done = None, ("", ())
        super().show(rows, cursor)

    def filter(self, text: str) -> None:
        self._filter = text
        self._search = self._slices(text) if text.strip() else None
        if self._search is None:
            self._show_matches(range(len(self._all)))
        else:
            self._go_on(self._search)

    def ready(self) -> None:
        while self._search is not None:
            self._advance()

    def move(self, by: int) -> None:
        self.ready()
        super().move(by)

    def choose(self) -> None:
        self.ready()
        super().choose()

    def _filter_rows(self) -> Rows:
        if not self._filter.strip():
            return self._all
        ranked = next(places for places in self._slices(self._filter) if places is not None)
        return Best(self._all, ranked)

    def _go_on(self, search: Iterator[list[int] | None]) -> None:
        if self._search is search and self.is_attached:
            self._advance()
            if self._search is search:
                self.call_later(self._go_on, search)

    def _advance(self) -> None:
        ranked = next(self._search) if self._search is not None else None
        if ranked is not None:
            self._search, self._done = None, (self._filter, ranked)
            self._show_matches(ranked)

    def _show_matches(self, places: Sequence[int]) -> None:
        self.rows = Best(self._all, places)
        self.cursor = self.top = 0
        self._settle()
        self.refresh()
        self.post_message(self.Moved(self))

    def _slices(self, typed: str) -> Iterator[list[int] | None]:
        """Searches in slices of time. Yields None after each slice. At the end it yields the indices of the
        matches, the best first."""
        texts = self._sought
        while len(texts) < len(self._all):
            texts += texts_of(self._all, len(texts), len(texts) + MADE)
            yield None
        words = typed.casefold().split()
        before, places = self._done
        if not before or not typed.startswith(before):
            places = range(len(texts))
        until, costs = time.perf_counter() + SLICE, list[int]()
        for nth, at in enumerate(places):
            text = texts[at]
            cost = 0
            for word in words:
                letters = distance(text, word)
                if letters is None:
                    break
                cost += letters
            else:
                costs.append(cost << 64 | len(text) << 32 | at)  # one number sorts in half the time
            if not nth % EACH and time.perf_counter() > until:
                yield None
                until = time.perf_counter() + SLICE
        yield None
        costs.sort()
        yield [packed & 0xFFFFFFFF for packed in costs]


def distance(path: str, word: str) -> int | None:
    """Returns how badly a path matches a typed word, 0 for the best match. Both are in lower case. Returns
    None if the path does not contain the letters of the word in order.

    The best match is a file name that begins with the word. After it come file names with the word at the
    beginning of one of their parts, and then file names with the word elsewhere. Scattered letters in the
    file name, and matches in the folders of the path, come last."""
    base = path.rfind("/") + 1
    at = path.find(word, base)
    if at == base:
        end = at + len(word)
        return 0 if end == len(path) or path[end] == "." else PREFIX
    if at > 0:
        return START if path[at - 1] in STARTS else RUN
    in_base = _apart(path, word, base)
    if in_base is not None and not in_base:
        return RUN
    at = path.find(word)
    if at >= 0:
        return 2 * RUN if not at or path[at - 1] in STARTS else 3 * RUN
    if in_base is not None:
        return RUN + STEP * in_base
    anywhere = _apart(path, word, 0)
    return None if anywhere is None else 3 * RUN + STEP * anywhere


def _apart(text: str, word: str, begin: int) -> int | None:
    """Returns how many letters of a word are scattered in a text. A letter is scattered if it is neither
    right after the previous letter nor at the beginning of a word of the text. Returns None if the text does
    not contain all letters in order."""
    latest, end = [], len(text)
    for letter in reversed(word):
        end = text.rfind(letter, begin, end)
        if end < 0:
            return None
        latest.append(end)
    apart, at = 0, begin - 1
    for letter in word:
        last = latest.pop()
        if at >= begin and at < last and text[at + 1] == letter:
            at += 1
            continue
        if at < begin and text[begin] == letter:
            at = begin
            continue
        start = _start_of(letter).search(text, max(at, begin), last + 1)
        if start is not None:
            at = start.end() - 1
        else:
            at = text.find(letter, at + 1)
            apart += 1
    return apart


@cache
def _start_of(letter: str) -> re.Pattern[str]:
    return re.compile(f"[{re.escape(STARTS)}]{re.escape(letter)}")
