"""Finds the role (keyword, string, …) of each part of a source text, with the lexers of Pygments.

    python -P -m tui.lexing        the process that `tui.colouring` starts

For some texts a lexer takes time that grows with the square of their length. So it only runs where it can be
ended: in a separate process or, for a single line, with a limit of CPU time. This module imports nothing of
Textual, so that the process starts in 80 ms."""

from __future__ import annotations

import signal
import sys
from array import array
from collections.abc import Iterator
from fnmatch import fnmatch
from typing import BinaryIO

from pygments import lex
from pygments.lexer import Lexer
from pygments.lexers import find_lexer_class, get_all_lexers
from pygments.token import Token, _TokenType

from tui.colouring import BY_LANGUAGE, FOUND, HEAD, NAMES, NOTHING, Roles
from tui.slices import within

SECONDS = 3.0  # of CPU that a text may take; then its process ends
SLICE = 0.01  # the same for a line, on the app's own thread

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
_KNOWN: dict[_TokenType, str] = {}


def lexer_of(path: str) -> Lexer | None:
    """Returns the lexer of Pygments for files with this name, None if there is none. Lexers from other
    packages are ignored, because finding them would import all of them, which takes 70 ms and 2.4 MB."""
    name = path.rpartition("/")[2]
    ranked = [
        (kind.priority + (0.0 if "*" in pattern else 0.5), kind.__name__, kind)
        for title, _, patterns, _ in get_all_lexers(plugins=False)
        for pattern in patterns
        if fnmatch(name, pattern) and (kind := find_lexer_class(title)) is not None
    ]
    best = max(ranked, key=lambda lexer: lexer[:2], default=None)
    return best[2](stripnl=False, ensurenl=False) if best is not None else None


def lexer_for(language: str) -> Lexer | None:
    """Returns the lexer for a language by its short name, such as `python` or `c++`. Returns None if there is
    none."""
    alias = language.casefold()
    for title, aliases, _, _ in get_all_lexers(plugins=False):
        if alias in aliases and (kind := find_lexer_class(title)) is not None:
            return kind(stripnl=False, ensurenl=False)
    return None


def role_of(token: _TokenType) -> str:
    """Returns the role in the app's themes for a kind of word in Pygments (a `_TokenType`)."""
    role = _KNOWN.get(token)
    if role is None:
        role = next((name for kind, name in _ROLES if token in kind), "text")  # type: ignore[comparison-overlap]
        _KNOWN[token] = role
    return role


def roles_in(text: str, lexer: Lexer) -> Roles:
    """Returns the roles of a text. There is no limit to the time that this takes."""
    pieces: list[str] = []
    at, roles, begins, last = array("I"), bytearray(), 0, ""
    for token, piece in lex(text, lexer):
        role = role_of(token)
        if role != last and piece:
            at.append(begins)
            roles.append(NAMES.index(role))
            last = role
        pieces.append(piece)
        begins += len(piece)
    return Roles("".join(pieces), at, bytes(roles))


def roles_soon(text: str, lexer: Lexer, seconds: float = SLICE) -> Roles | None:
    """Returns the roles of a text. Returns None if finding them takes more than `seconds` of CPU time, or on
    a thread where CPU time cannot be limited."""
    return within(seconds, lambda: roles_in(text, lexer))


def serve(source: BinaryIO, out: BinaryIO) -> None:
    """Read requests from `source` and write the answers to `out`, until the input ends."""
    for kind, name, text in _questions(source):
        # The system ends this process when the time is over, even if whoever asked is gone.
        signal.setitimer(signal.ITIMER_VIRTUAL, SECONDS)
        lexer = lexer_for(name) if kind == BY_LANGUAGE else lexer_of(name)
        roles = roles_in(text, lexer) if lexer is not None else None
        signal.setitimer(signal.ITIMER_VIRTUAL, 0.0)
        if roles is None:
            out.write(HEAD.pack(NOTHING, 0, 0))
        else:
            back = roles.text.encode("utf-8", "surrogatepass")
            out.write(HEAD.pack(FOUND, len(back), len(roles.at)) + back + roles.at.tobytes() + roles.names)
        out.flush()


def _questions(source: BinaryIO) -> Iterator[tuple[int, str, str]]:
    while head := source.read(HEAD.size):
        kind, name, length = HEAD.unpack(head)
        words = source.read(name).decode("utf-8", "surrogatepass")
        yield kind, words, source.read(length).decode("utf-8", "surrogatepass")


if __name__ == "__main__":
    signal.signal(signal.SIGVTALRM, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # an app that was killed reads no answers
    serve(sys.stdin.buffer, sys.stdout.buffer)
