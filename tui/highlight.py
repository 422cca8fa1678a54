"""Source text as lines of parts with roles: keyword, string, comment …"""

from __future__ import annotations

import re
from array import array
from collections.abc import Iterator, Sequence
from typing import Any, overload

from pygments import lex
from pygments.lexer import Lexer
from pygments.lexers import get_lexer_for_filename
from pygments.token import Token, _TokenType
from pygments.util import ClassNotFound

from tui.text import Part, safe

WHOLE_MAX = 1024 * 1024  # bytes of a text that is coloured; longer ones stay plain
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
_NEWLINE = re.compile("\n")
_KNOWN: dict[_TokenType, str] = {}


def lexer_of(path: str) -> Lexer | None:
    """The lexer for files of this name; None if there is none."""
    try:
        return get_lexer_for_filename(path, stripnl=False, ensurenl=False)
    except ClassNotFound:
        return None


class Plain(Sequence[tuple[Part, ...]]):
    """The lines of a text without colours, made as they are asked for."""

    def __init__(self, text: str) -> None:
        self._text = text
        ends = [found.end() for found in _NEWLINE.finditer(text)]
        if len(ends) > 0 and ends[-1] == len(text):  # a final newline makes no further line
            ends.pop()
        self._begins = array("I", [0, *ends])

    def __len__(self) -> int:
        return len(self._begins)

    @overload
    def __getitem__(self, index: int, /) -> tuple[Part, ...]: ...
    @overload
    def __getitem__(self, index: slice, /) -> Sequence[tuple[Part, ...]]: ...
    def __getitem__(self, index: int | slice, /) -> Any:
        if isinstance(index, slice):
            return [self[at] for at in range(*index.indices(len(self)))]
        return ((safe(self.line(index)), "text"),)

    def line(self, index: int) -> str:
        """A line as it is in the text."""
        begins = self._begins[index]
        end = self._text.find("\n", begins)
        return self._text[begins:] if end < 0 else self._text[begins:end]


def plain(text: str) -> Plain:
    """The lines of a text without colours."""
    return Plain(text)


def coloured(text: str, path: str) -> list[tuple[Part, ...]] | None:
    """The lines of a text with roles; None where no lexer knows the file or the text is too long."""
    lexer = lexer_of(path) if len(text) <= WHOLE_MAX else None
    if lexer is None or any(len(line) > LINE_MAX for line in lines_of(text)):
        return None
    found: list[tuple[Part, ...]] = []
    parts: list[Part] = []
    for role, piece in _pieces(text, lexer):
        first, *others = piece.split("\n")
        if first:
            parts.append((safe(first), role))
        for other in others:
            found.append(tuple(parts))
            parts = [(safe(other), role)] if other else []
    if parts or not text.endswith("\n"):
        found.append(tuple(parts))
    return found


def lines_of(text: str) -> list[str]:
    """The lines without their ends; a final newline makes no further line."""
    lines = text.split("\n")
    return lines[:-1] if len(lines) > 1 and lines[-1] == "" else lines


def _pieces(text: str, lexer: Lexer) -> Iterator[tuple[str, str]]:
    for token, piece in lex(text, lexer):
        role = _KNOWN.get(token)
        if role is None:
            role = _KNOWN[token] = next((name for kind, name in _ROLES if token in kind), "text")  # type: ignore[comparison-overlap]
        yield role, piece
