"""Renders source text as lines of HTML with a few classes: comment, keyword, string, number, name, title."""

from __future__ import annotations

from collections.abc import Iterator
from fnmatch import fnmatch
from functools import cache
from html import escape

from pygments import lex
from pygments.lexer import Lexer
from pygments.lexers import find_lexer_class, get_all_lexers, get_lexer_by_name
from pygments.token import Token, _TokenType
from pygments.util import ClassNotFound

from relay.render.plain import plain_lines

_CLASSES: tuple[tuple[_TokenType, str], ...] = (
    (Token.Comment, "c"),
    (Token.Keyword, "k"),
    (Token.Operator.Word, "k"),
    (Token.Name.Tag, "k"),
    (Token.Literal.String, "s"),
    (Token.Literal.Number, "m"),
    (Token.Name.Function, "n"),
    (Token.Name.Class, "n"),
    (Token.Name.Decorator, "n"),
    (Token.Name.Builtin, "n"),
    (Token.Name.Attribute, "n"),
    (Token.Generic.Heading, "t"),
    (Token.Generic.Subheading, "t"),
    (Token.Generic.Deleted, "del"),
    (Token.Generic.Inserted, "ins"),
)

# What stands around a piece of a class. Lines of files have thousands, and every byte of them is sent.
_LONG = '<span class="%s">%s</span>'
_SHORT = "<i class=%s>%s</i>"


def lines_of(text: str, name: str) -> list[str]:
    """Render the lines of a file called `name` as HTML. If no lexer knows the name, they are only escaped."""
    lexer = _lexer_of_file(name)
    return plain_lines(text) if lexer is None else _lines(text, lexer, _SHORT)


def block(text: str, language: str) -> str:
    """Render a block of code in that language as HTML."""
    try:
        lexer = get_lexer_by_name(language, stripnl=False, ensurenl=False) if language else None
    except ClassNotFound:
        lexer = None
    return "\n".join(plain_lines(text) if lexer is None else _lines(text, lexer, _LONG))


def _lines(text: str, lexer: Lexer, markup: str) -> list[str]:
    lines: list[str] = []
    line = ""
    for name, part in _parts(text, lexer):
        first, *others = escape(part).split("\n")
        line += _mark_up(first, name, markup)
        for piece in others:
            lines.append(line)
            line = _mark_up(piece, name, markup)
    if line or not lines:  # a final newline makes no further line
        lines.append(line)
    return lines


def _mark_up(piece: str, name: str, markup: str) -> str:
    return markup % (name, piece) if name and piece else piece


def _parts(text: str, lexer: Lexer) -> Iterator[tuple[str, str]]:
    """Yields the pieces of the text as (CSS class, text). Neighbouring pieces of the same class are
    joined."""
    last = ""
    pieces: list[str] = []
    for kind, value in lex(text.replace("\r\n", "\n").replace("\r", "\n"), lexer):
        name = _class_of(kind)
        if name != last and pieces:
            yield last, "".join(pieces)
            pieces = []
        last = name
        pieces.append(value)
    if pieces:
        yield last, "".join(pieces)


@cache
def _class_of(kind: _TokenType) -> str:
    return next((name for of_class, name in _CLASSES if kind[: len(of_class)] == of_class), "")


def _lexer_of_file(name: str) -> Lexer | None:
    """Find the lexer for files of this name; None if there is none. Lexers of other packages are ignored,
    because searching them would import all of them."""
    candidates = [
        (kind.priority + (0.0 if "*" in pattern else 0.5), kind.__name__, kind)
        for title, _, patterns, _ in get_all_lexers(plugins=False)
        for pattern in patterns
        if fnmatch(name, pattern) and (kind := find_lexer_class(title)) is not None
    ]
    best = max(candidates, key=lambda candidate: candidate[:2], default=None)
    return best[2](stripnl=False, ensurenl=False) if best is not None else None
