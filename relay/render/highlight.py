"""Source text as lines of HTML with a few classes: comment, keyword, string, number, name, title."""

from __future__ import annotations

from collections.abc import Iterator
from fnmatch import fnmatch
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


def lines_of(text: str, name: str) -> list[str]:
    """The lines of a file called `name` as HTML; only escaped if no lexer knows the name."""
    lexer = _lexer_of_file(name)
    return plain_lines(text) if lexer is None else _lines(text, lexer)


def block(text: str, language: str) -> str:
    """A block of code in that language, as HTML."""
    try:
        lexer = get_lexer_by_name(language, stripnl=False, ensurenl=False) if language else None
    except ClassNotFound:
        lexer = None
    return "\n".join(plain_lines(text) if lexer is None else _lines(text, lexer))


def _lines(text: str, lexer: Lexer) -> list[str]:
    lines: list[list[str]] = [[]]
    for name, part in _parts(text, lexer):
        first, *others = part.split("\n")
        _put(lines[-1], name, first)
        for line in others:
            lines.append([])
            _put(lines[-1], name, line)
    if len(lines) > 1 and not lines[-1]:  # a final newline makes no further line
        lines.pop()
    return ["".join(line) for line in lines]


def _put(line: list[str], name: str, text: str) -> None:
    if text:
        line.append(f'<span class="{name}">{escape(text)}</span>' if name else escape(text))


def _parts(text: str, lexer: Lexer) -> Iterator[tuple[str, str]]:
    """Pieces of the text with their class; neighbours of the same class are joined."""
    last = ""
    pieces: list[str] = []
    for kind, value in lex(text.replace("\r\n", "\n").replace("\r", "\n"), lexer):
        name = next((name for of_class, name in _CLASSES if _is_within(kind, of_class)), "")
        if name != last and pieces:
            yield last, "".join(pieces)
            pieces = []
        last = name
        pieces.append(value)
    if pieces:
        yield last, "".join(pieces)


def _is_within(kind: _TokenType, ancestor: _TokenType) -> bool:
    return tuple(kind[: len(ancestor)]) == tuple(ancestor)


def _lexer_of_file(name: str) -> Lexer | None:
    """The lexer for files of this name; None if there is none. Lexers of other packages are ignored, because
    searching them would import all of them."""
    candidates = [
        (kind.priority + (0.0 if "*" in pattern else 0.5), kind.__name__, kind)
        for title, _, patterns, _ in get_all_lexers(plugins=False)
        for pattern in patterns
        if fnmatch(name, pattern) and (kind := find_lexer_class(title)) is not None
    ]
    best = max(candidates, key=lambda candidate: candidate[:2], default=None)
    return best[2](stripnl=False, ensurenl=False) if best is not None else None
