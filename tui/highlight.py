"""Source text as lines of parts (text, role). A role is the name of a style, such as keyword, string or
comment.

A line is built only when it is needed. Stored are the text, and where lines and roles begin. For a text of 1
MB that takes 2 MB. The parts of all lines would take 25 MB."""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections.abc import Sequence
from typing import Any, overload

from tui.colouring import COLOURING, NAMES, Roles
from tui.text import Part, line_at, safe, starts, windows

WHOLE_MAX = 1024 * 1024  # characters of a text that is coloured; longer ones stay plain
LINES_MAX = 20_000  # the same: 100,000 short lines would take seconds of CPU
LINE_MAX = 4_000  # characters of a line that are coloured


class Plain(Sequence[tuple[Part, ...]]):
    """The lines of a text without colours. A line is made when it is needed."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._begins = starts(text)
        if len(self._begins) > 1 and self._begins[-1] == len(text):  # a final newline makes no further line
            self._begins.pop()

    def __len__(self) -> int:
        return len(self._begins)

    @overload
    def __getitem__(self, index: int, /) -> tuple[Part, ...]: ...
    @overload
    def __getitem__(self, index: slice, /) -> Sequence[tuple[Part, ...]]: ...
    def __getitem__(self, index: int | slice, /) -> Any:
        if isinstance(index, slice):
            return [self[at] for at in range(*index.indices(len(self)))]
        return self.parts(index)

    def parts(self, index: int) -> tuple[Part, ...]:
        """Returns a line as parts (text, role), escaped for the terminal."""
        return ((safe(self.line(index)), "text"),)

    def line(self, index: int) -> str:
        """Returns a line of the text, unchanged."""
        return line_at(self._text, self._begins[index])


class ColouredText(Plain):
    """The lines of a text with roles. `at`: the positions in the text where roles begin, in order. `roles`:
    the index in NAMES of each of these roles."""

    def __init__(self, text: str, at: array[int], roles: bytes) -> None:
        super().__init__(text)
        self._at, self._roles = at, roles

    def parts(self, index: int) -> tuple[Part, ...]:
        line = self.line(index)
        return tuple((safe(line[start:end]), role) for start, end, role in self.spans(index))

    def spans(self, index: int) -> list[tuple[int, int, str]]:
        """Returns (start, end, role) of each piece of a line that has a role."""
        first = begins = self._begins[index]
        end = begins + len(self.line(index))
        ranges = []
        place = bisect_right(self._at, begins) - 1
        while begins < end:
            ends = min(end, self._at[place + 1]) if place + 1 < len(self._at) else end
            ranges.append((begins - first, ends - first, NAMES[self._roles[place]]))
            begins, place = ends, place + 1
        return ranges


def plain(text: str) -> Plain:
    """Returns the lines of a text without colours."""
    return Plain(text)


def colour_text(text: str, path: str = "", language: str = "") -> ColouredText | None:
    """Returns the lines of a text with roles (names of styles), found by the lexer for `path` or `language`.
    Returns None if there is no lexer, the text is too long, or the lexer takes too long. Call it on a
    thread."""
    if not colourable(text):
        return None
    roles = COLOURING.roles(text, path, language)
    return with_roles(roles) if roles is not None else None


def with_roles(roles: Roles) -> ColouredText:
    """Returns the coloured lines of a text. `roles`: the text with the roles (names of styles) that a lexer
    has found in it."""
    return ColouredText(*roles)


def colourable(text: str) -> bool:
    """Returns whether a text is short enough to be coloured."""
    if len(text) > WHOLE_MAX or text.count("\n") > LINES_MAX:
        return False
    return all(len(line) <= LINE_MAX for _, lines in windows(text) for line in lines)
