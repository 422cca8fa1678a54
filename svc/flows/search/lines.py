"""Finds the lines of a text that match a pattern, as `grep` does.

    pattern = compile_pattern("def [a-z]+", ignore_case=True)
    list(pattern.lines_of("x = 1\ndef main():\n"))  # [TextLine(2, "def main():")]

A line ends with a line feed; a carriage return before it belongs to the line's end."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator
from typing import NamedTuple

from localstore.core.errors import UsageError
from localstore.core.paths import terminal_safe

SPECIAL = re.compile(r"[\\.^$*+?{}\[\]|()]")  # characters that mean more than themselves in a pattern
LEADING_FLAGS = re.compile(r"\A\(\?[a-zA-Z]+\)")  # such as (?i), which stand at the beginning only
SHOWN = 60  # characters of a wrong pattern that the error repeats


class TextLine(NamedTuple):
    """A line of a text, numbered from 1, without its end."""

    number: int
    text: str


def split_lines(text: str) -> list[str]:
    """Return the lines of a text, without line feeds. No empty line follows the last line feed."""
    lines = text.split("\n")
    if not lines[-1]:
        lines.pop()
    return lines


class Pattern(NamedTuple):
    """What a line must contain. `regex` finds it in a line. If it is a plain text, `words` is that text,
    case-folded with `folds`; otherwise `words` is None."""

    regex: re.Pattern[str]
    words: str | None
    folds: bool

    def lines_of(self, text: str) -> Iterator[TextLine]:
        """Yields the lines of a text that match."""
        if self.words is not None:
            return lines_with(text, text.casefold() if self.folds else text, self.words)
        return self._matching(text)

    def _matching(self, text: str) -> Iterator[TextLine]:
        search = self.regex.search
        for number, line in enumerate(split_lines(text), 1):
            stripped = line.removesuffix("\r")
            if search(stripped):
                yield TextLine(number, stripped)

    def spans_in(self, line: str) -> Iterator[tuple[int, int]]:
        """Yields (start, end) of each part of a line that matches and is not empty."""
        return (match.span() for match in self.regex.finditer(line) if match.end() > match.start())


def lines_with(text: str, folded: str, words: str) -> Iterator[TextLine]:
    """Yields the lines of `text` that contain `words`, a plain text without line feed. They are looked for in
    `folded`, which is the text itself, or the text case-folded if `words` are case-folded."""
    at = folded.find(words)
    if at < 0:
        return
    lines, number, counted = text.split("\n"), 1, 0
    while at >= 0 and not (at == len(folded) and not lines[-1]):
        number, counted = number + folded.count("\n", counted, at), at
        yield TextLine(number, lines[number - 1].removesuffix("\r"))
        end = folded.find("\n", at)
        at = folded.find(words, end + 1) if end >= 0 else -1


def compile_pattern(
    typed: str, *, fixed: bool = False, ignore_case: bool = False, whole_words: bool = False
) -> Pattern:
    """Return the pattern that the user typed: a regular expression, or with `fixed` a plain text. With
    `whole_words`, no letter, digit or underscore may be beside a match. Raises UsageError for a broken
    regular expression, which says where it is broken."""
    if "\n" in typed:
        raise UsageError("PATTERN has a line break, and each line is searched alone; search for one line")
    plain = fixed or not SPECIAL.search(typed)
    flags = re.IGNORECASE if ignore_case else re.NOFLAG
    source = re.escape(typed) if plain else typed
    regex = _compile(source, flags)
    if whole_words:
        body, flags = LEADING_FLAGS.sub("", source), re.RegexFlag(regex.flags)
        end = "\n" if flags & re.VERBOSE else ""  # a comment would take the bracket in
        regex = _compile(rf"(?<!\w)(?:{body}{end})(?!\w)", flags)
    words = typed if plain and not whole_words and "\r" not in typed else None
    return Pattern(regex, words.casefold() if words and ignore_case else words, ignore_case)


def _compile(source: str, flags: re.RegexFlag) -> re.Pattern[str]:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return re.compile(source, flags)
    except re.error as error:
        at = error.pos if error.pos is not None else 0
        rest = terminal_safe(source[at : at + SHOWN])
        place = f"before '{rest}'" if rest else "at its end"
        raise UsageError(
            f"PATTERN is no regular expression: {error.msg}, at character {at + 1}, {place}; "
            "-F takes PATTERN as plain text"
        ) from None
    except (OverflowError, RecursionError):
        raise UsageError(
            "PATTERN is too large for a regular expression; -F takes PATTERN as plain text"
        ) from None
