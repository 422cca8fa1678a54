"""Finds lines of a text again after the text was edited, so that comments on lines move with their lines.

A position is a range of bytes, which is moved through each edit. Text that is inserted at an end of the range
does not become part of it; text that replaces a part of the range does. If the original edits are known, the
result is exact. Otherwise `follow` compares the two texts, which is less exact. `elsewhere` finds lines that
were removed at one place and occur exactly once at another."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from localstore.core.diff import text_edits
from localstore.core.diff.line_diff import lines
from localstore.core.diff.text_edits import TOKEN, Edit

TELLING = 8  # bytes without blanks that lines have at least, to be looked for elsewhere
SLIDE = 1000  # bytes of a line that are looked back through for where it begins
ALIKE = 0.5  # share of words of a line that replaces another one, to be taken for it


class Span(NamedTuple):
    """Bytes `start` to `end` (exclusive) of a text. An empty span is the place of a text that was deleted."""

    start: int
    end: int


def of_lines(text: bytes, first: int, last: int) -> Span | None:
    """The bytes of lines `first` to `last`, counted from 1, without the line break of the last one. None if
    the text does not have these lines."""
    starts = _starts(text)
    if not 1 <= first <= last <= len(starts):
        return None
    end = starts[last] if last < len(starts) else len(text)
    return Span(starts[first - 1], max(starts[first - 1], _before_newline(text, end)))


def lines_of(text: bytes, span: Span) -> tuple[int, int]:
    """(first line, last line) of the lines that contain the span, counted from 1. An empty span is in one
    line."""
    starts = _starts(text) or [0]
    first = bisect_right(starts, span.start)
    last = bisect_right(starts, max(span.start, span.end - 1))
    return max(1, first), max(1, first, last)


def content(text: bytes, first: int, last: int) -> bytes:
    """The text of lines `first` to `last`, without the line break of the last one; b"" if the text does not
    have them."""
    span = of_lines(text, first, last)
    return text[span.start : span.end] if span is not None else b""


def through(span: Span, edits: Iterable[Edit]) -> Span:
    """The position of the span in the text that results from `edits`, which are ascending and disjoint."""
    by = 0  # how far the edits so far have moved what comes behind them
    start: int | None = None
    for offset, deleted, inserted in edits:
        if offset + deleted <= span.start:
            by += len(inserted) - deleted
            continue
        if offset >= span.end:
            break
        if start is None:
            start = min(offset, span.start) + by
        if offset + deleted > span.end:
            return Span(start, offset + by + len(inserted))
        by += len(inserted) - deleted
    if start is None:
        start = span.start + by
    return Span(start, max(start, span.end + by))


def follow(old: bytes, new: bytes, spans: Sequence[Span], edits: Sequence[Edit] | None = None) -> list[Span]:
    """Moves spans from an old text to a new one. Returns their positions in `new`. `edits`: the edits that
    turned `old` into `new`; None to find them by comparing the two texts."""
    line_edits = _by_lines(old, text_edits.edits(old, new) if edits is None else edits)
    return [_narrow(old, new, span, through(span, line_edits), line_edits) for span in spans]


def elsewhere(old: bytes, new: bytes, span: Span, lost: bytes) -> Span | None:
    """The position in `new` of the bytes `lost`, which are the lines of `span` in `old` and were removed or
    moved. Returns None if the lines have fewer than TELLING bytes, occur more than once in `old`, or do not
    occur exactly once in `new`."""
    if len(lost.replace(b" ", b"")) < TELLING or lost == new[span.start : span.end]:
        return None
    lost_lines = lines(lost)
    if len(places := _places(new, lost_lines)) != 1 or len(_places(old, lost_lines)) > 1:
        return None
    return of_lines(new, places[0] + 1, places[0] + len(lost_lines))


def _by_lines(old: bytes, edits: Sequence[Edit]) -> list[Edit]:
    """The same edits, with inserted and deleted lines moved to the start of a line where that gives the same
    text. A comparison by characters often places such an edit inside a line. All other edits are returned
    unchanged."""
    line_edits: list[Edit] = []
    for offset, deleted, inserted in edits:
        edit = Edit(offset, deleted, inserted)
        if not (deleted and inserted):
            floor = line_edits[-1].offset + line_edits[-1].deleted if line_edits else 0
            gone = old[offset : offset + deleted] or inserted
            if b"\n" in gone:
                by = _back(old, max(floor, offset - SLIDE), offset, gone)
                turned = gone[len(gone) - by % len(gone) :] + gone[: len(gone) - by % len(gone)]
                edit = Edit(offset - by, deleted, turned if inserted else b"")
        line_edits.append(edit)
    return line_edits


def _back(old: bytes, floor: int, offset: int, moved: bytes) -> int:
    """How many bytes an inserted or deleted run has to move towards the start of the text, so that it begins
    at the start of a line. Returns 0 if this would change the resulting text. `offset`: where the run is in
    the text `old`; `moved`: its bytes; `floor`: the lowest offset to which it may move."""
    for by in range(offset - floor + 1):
        at = offset - by
        if at == 0 or old[at - 1 : at] == b"\n":
            return by
        if old[at - 1] != moved[-1 - by % len(moved)]:
            break
    return 0


def _narrow(old: bytes, new: bytes, span: Span, moved: Span, edits: Sequence[Edit]) -> Span:
    """Where the text at `span` of `old` is in `new`. `edits`: the edits from `old` to `new`; `moved`: the
    place to which they move the span. This place is the result, unless one edit replaced more than the span.
    Then the result is the line in `moved` that is most similar to the old text, or an empty span if none is
    similar."""
    whole = next(
        (edit for edit in edits if edit.offset <= span.start and edit.offset + edit.deleted >= span.end), None
    )
    if whole is None or span.start == span.end or not whole.inserted:
        return moved
    if whole.offset == span.start and whole.offset + whole.deleted == span.end:
        return moved
    tokens = Counter(TOKEN.findall(old[span.start : span.end]))
    first, last = lines_of(new, moved)
    best, score = None, ALIKE
    for number in range(first, min(last, first + 200) + 1):
        line = of_lines(new, number, number)
        if line is None:
            break
        have = Counter(TOKEN.findall(new[line.start : line.end]))
        alike = 2 * (tokens & have).total() / max(1, tokens.total() + have.total())
        if alike > score:
            best, score = line, alike
    if best is None:
        return Span(moved.start, moved.start)
    return best


def _places(text: bytes, block: Sequence[bytes]) -> list[int]:
    """Where the lines `block` occur in the text: the number (from 0) of the first line of each occurrence.
    Returns at most two numbers."""
    have = [line.rstrip(b"\r\n") for line in lines(text)]
    plain = [line.rstrip(b"\r\n") for line in block]
    places: list[int] = []
    at = -1
    while len(places) < 2:
        try:
            at = have.index(plain[0], at + 1)
        except ValueError:
            break
        if have[at : at + len(plain)] == plain:
            places.append(at)
    return places


def _starts(text: bytes) -> list[int]:
    """The offset at which each line of the text begins."""
    starts, at = [], 0
    for line in lines(text):
        starts.append(at)
        at += len(line)
    return starts


def _before_newline(text: bytes, end: int) -> int:
    if end and text[end - 1 : end] == b"\n":
        end -= 1
        if end and text[end - 1 : end] == b"\r":
            end -= 1
    return end
