"""Adds the lines around the matches of a file, as `grep -C` does."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from svc.flows.search.lines import TextLine


class Around(NamedTuple):
    """How many lines before and after each match are shown."""

    before: int
    after: int


class FoundLine(NamedTuple):
    """A line that matches. `lines`: all lines of its file, [] if none of them are shown around it."""

    path: str
    line: TextLine
    lines: Sequence[str]


class ShownLine(NamedTuple):
    """A line to show. `matches`: False for one that is only near a match."""

    line: TextLine
    matches: bool


def add_context(matching: Iterable[FoundLine], around: Around) -> Iterator[ShownLine | None]:
    """Yields the matching lines of one file with the lines around them, each once, and None where lines are
    left out between two of them."""
    last = until = 0  # the last line that was yielded; the last one that belongs to the match before
    lines: Sequence[str] = ()
    for _, line, lines in matching:
        yield from _near(lines, last + 1, min(until, line.number - 1))
        last = max(last, min(until, line.number - 1))
        start = max(last + 1, line.number - around.before)
        if any(around) and last and start > last + 1:
            yield None
        yield from _near(lines, start, line.number - 1)
        yield ShownLine(line, True)
        last, until = line.number, line.number + around.after
    yield from _near(lines, last + 1, min(until, len(lines)))


def _near(lines: Sequence[str], first: int, end: int) -> Iterator[ShownLine]:
    for number in range(first, end + 1):
        yield ShownLine(TextLine(number, lines[number - 1].removesuffix("\r")), False)
