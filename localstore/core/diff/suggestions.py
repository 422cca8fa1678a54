"""Applies suggestions of a review to a text (a suggestion replaces some of its lines), and makes the message
of the resulting seal. Relay and device compute the same result, so the device signs only a seal that it has
computed itself."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from localstore.core.diff import anchors
from localstore.core.errors import Conflict


class SuggestionsOverlap(Conflict):
    """Two suggestions replace the same line."""

    code = "suggestions_overlap"


class Suggested(NamedTuple):
    """A suggested replacement: lines `first` to `last`, counted from 1, become `text`. "" deletes the
    lines."""

    first: int
    last: int
    text: str


def apply_suggestions(text: bytes, suggestions: Iterable[Suggested]) -> bytes:
    """The text with all suggestions applied. New lines get the line break of the lines that they replace.
    Raises SuggestionsOverlap, and IndexError for lines that the text does not have."""
    ordered = sorted(suggestions)
    parts: list[bytes] = []
    copied = after = 0
    for first, last, new in ordered:
        if first <= after:
            raise SuggestionsOverlap(f"two suggestions replace line {first}; apply one of them")
        span = anchors.of_lines(text, first, last)
        if span is None:
            raise IndexError(last)
        end = _end(text, span.end)
        replacement = new.replace("\r\n", "\n").removesuffix("\n")
        newline = text[span.end : end] or b"\n"
        lines = replacement.encode().replace(b"\n", newline)
        parts += [text[copied : span.start], lines + text[span.end : end] if new else b""]
        copied, after = end, last
    return b"".join([*parts, text[copied:]])


def message(number: int, count: int, authors: Iterable[str], text: str | None = None) -> str:
    """The message of the seal that applies `count` suggestions to proposal `number`: `text`, or a standard
    sentence, and then the handles of the suggestions' authors."""
    title = text or f"Apply {'a suggestion' if count == 1 else f'{count} suggestions'} to #{number}"
    credits = [f"Co-authored-by: {handle}" for handle in dict.fromkeys(authors)]
    return "\n\n".join([title.rstrip(), "\n".join(credits)]) if credits else title.rstrip()


def _end(text: bytes, at: int) -> int:
    """The offset after the line break at offset `at`; `at` itself if no line break is there."""
    if text[at : at + 2] == b"\r\n":
        return at + 2
    return at + 1 if text[at : at + 1] == b"\n" else at
