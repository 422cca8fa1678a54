"""Source text as lines of parts with roles: keyword, string, comment …

A line is made when it is asked for. What is kept are the text, where lines begin, and where roles begin: a
text of 1 MB takes 2 MB, and as parts of all its lines it would take 25.
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections.abc import Sequence
from fnmatch import fnmatch
from typing import Any, overload

from pygments import lex
from pygments.lexer import Lexer
from pygments.lexers import find_lexer_class, get_all_lexers
from pygments.token import Token, _TokenType

from tui.text import Part, line_at, safe, starts, windows

WHOLE_MAX = 1024 * 1024  # characters of a text that is coloured; longer ones stay plain
LINES_MAX = 20_000  # the same: 100,000 short lines would take seconds of CPU
LINE_MAX = 4_000  # characters of a line that are coloured

_ROLES: tuple[tuple[_TokenType, str], ...] = (
    (Token.Comment, "comment"),
    (Token.Keyword, "keyword"),
    (Token.Operator.Word, "keyword"),
    (Token.Literal.String, "string"),
    (Token.Literal.Number, "number"),
    (Token.Name.Function, "name"),
    (Token.Name.Class, "name"),
    (Token.Name.Decorator, "name"),
    (Token.Name.Builtin, "name"),
    (Token.Name.Tag, "keyword"),
    (Token.Name.Attribute, "name"),
    (Token.Generic.Heading, "title"),
    (Token.Generic.Subheading, "title"),
    (Token.Generic.Strong, "title"),
)
NAMES = ("text", *dict.fromkeys(role for _, role in _ROLES))
_KNOWN: dict[_TokenType, str] = {}


def lexer_of(path: str) -> Lexer | None:
    """The lexer for files of this name, the one that Pygments would take; None if there is none. Those that
    other packages bring are left out: to ask for them imports them all, which takes 70 ms and 2.4 MB."""
    name = path.rpartition("/")[2]
    found = [
        (kind.priority + (0.0 if "*" in pattern else 0.5), kind.__name__, kind)
        for title, _, patterns, _ in get_all_lexers(plugins=False)
        for pattern in patterns
        if fnmatch(name, pattern) and (kind := find_lexer_class(title)) is not None
    ]
    best = max(found, key=lambda one: one[:2], default=None)
    return best[2](stripnl=False, ensurenl=False) if best is not None else None


class Plain(Sequence[tuple[Part, ...]]):
    """The lines of a text without colours, made as they are asked for."""

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
        """A line as it is painted."""
        return ((safe(self.line(index)), "text"),)

    def line(self, index: int) -> str:
        """A line as it is in the text."""
        return line_at(self._text, self._begins[index])


class Coloured(Plain):
    """The lines of a text with roles. `at`: where in the text each role begins, in order; `roles`: which
    of NAMES it is."""

    def __init__(self, text: str, at: array[int], roles: bytearray) -> None:
        super().__init__(text)
        self._at, self._roles = at, roles

    def parts(self, index: int) -> tuple[Part, ...]:
        line = self.line(index)
        return tuple((safe(line[start:end]), role) for start, end, role in self.spans(index))

    def spans(self, index: int) -> list[tuple[int, int, str]]:
        """Where in a line each role begins and ends."""
        first = begins = self._begins[index]
        end = begins + len(self.line(index))
        found = []
        place = bisect_right(self._at, begins) - 1
        while begins < end:
            ends = min(end, self._at[place + 1]) if place + 1 < len(self._at) else end
            found.append((begins - first, ends - first, NAMES[self._roles[place]]))
            begins, place = ends, place + 1
        return found


def plain(text: str) -> Plain:
    """The lines of a text without colours."""
    return Plain(text)


def coloured(text: str, path: str) -> Coloured | None:
    """The lines of a text with roles; None where no lexer knows the file or the text is too long."""
    lexer = lexer_of(path) if len(text) <= WHOLE_MAX and text.count("\n") <= LINES_MAX else None
    if lexer is None or any(len(line) > LINE_MAX for _, lines in windows(text) for line in lines):
        return None
    pieces: list[str] = []  # a lexer may change ends of lines
    at, roles, begins, last = array("I"), bytearray(), 0, ""
    for token, piece in lex(text, lexer):
        role = role_of(token)
        if role != last and piece:
            at.append(begins)
            roles.append(NAMES.index(role))
            last = role
        pieces.append(piece)
        begins += len(piece)
    return Coloured("".join(pieces), at, roles)


def lines_of(text: str) -> list[str]:
    """The lines without their ends; a final newline makes no further line."""
    lines = text.split("\n")
    return lines[:-1] if len(lines) > 1 and lines[-1] == "" else lines


def role_of(token: _TokenType) -> str:
    """The role of a token of Pygments."""
    known = _KNOWN.get(token)
    if known is None:
        known = next((name for kind, name in _ROLES if token in kind), "text")  # type: ignore[comparison-overlap]
        _KNOWN[token] = known
    return known
