"""Translates git's glob patterns to regular expressions whose matching never takes exponential time.

Patterns and names are *octets*: text with one character for each byte of its UTF-8, because git's `?` and
`[…]` match bytes. A star ends at the earliest position where the literal text after it fits. `**/` ends at
the earliest directory where the segments after it fit. This still finds every match. So the expressions need
no backtracking (they use atomic groups), and matching takes about pattern length × path length steps."""

from __future__ import annotations

import re
from enum import Enum

from localstore.core.model.limits import PATH_BYTES

SPECIAL = frozenset("*?[\\")
NEVER = r"(?!)"  # a malformed pattern matches nothing, as in git


class _Op(Enum):
    STAR = "[^/]*"
    SLASH = "/"
    ANY_DIRECTORIES = "(?:[^/]*/)*?"  # `**/`
    SOME_DIRECTORIES = "(?:[^/]*/)+?"  # `**\/`, which git does not let match nothing
    EVERYTHING = ".*"  # `**` at the end


_JUMPS = (_Op.ANY_DIRECTORIES, _Op.SOME_DIRECTORIES)
_TAKES_A_BYTE = (_Op.SLASH, _Op.SOME_DIRECTORIES)
_Token = str | _Op  # a string is the expression of exactly one byte


class _Malformed(Exception):
    """The pattern has an unclosed set, an unknown class or a trailing backslash."""


def _members(first: int, last: int) -> frozenset[int]:
    return frozenset(range(first, last + 1))


_LOWER, _UPPER, _DIGIT = _members(97, 122), _members(65, 90), _members(48, 57)
_GRAPH = _members(0x21, 0x7E)
_CLASSES = {
    "alnum": _LOWER | _UPPER | _DIGIT,
    "alpha": _LOWER | _UPPER,
    "blank": frozenset(b" \t"),
    "cntrl": _members(0, 31) | {127},
    "digit": _DIGIT,
    "graph": _GRAPH,
    "lower": _LOWER,
    "print": _GRAPH | {32},
    "punct": _GRAPH - _LOWER - _UPPER - _DIGIT,
    "space": frozenset(b" \t\n\r"),  # git's own table: no vertical tab, no form feed
    "upper": _UPPER,
    "xdigit": _DIGIT | frozenset(b"abcdefABCDEF"),
}


def octets(text: str) -> str:
    """The text with one character for each byte of its UTF-8, because git matches patterns by bytes. Bytes
    that are not UTF-8 come as Python's `surrogateescape` writes them."""
    return text if text.isascii() else text.encode("utf-8", "surrogateescape").decode("latin-1")


def literal_length(pattern: str) -> int:
    """How many characters at the start of the pattern are literal, without special meaning."""
    return next((at for at, char in enumerate(pattern) if char in SPECIAL), len(pattern))


def expression(pattern: str, *, pathname: bool) -> str:
    """The regular expression that matches what the glob `pattern` matches, for `fullmatch` with the flag
    `re.DOTALL`. `pathname`: whether the pattern is for whole paths; otherwise it is for names without a
    slash."""
    try:
        tokens = _tokens(pattern, pathname)
    except _Malformed:
        return NEVER
    if sum(token in _TAKES_A_BYTE or isinstance(token, str) for token in tokens) > PATH_BYTES:
        return NEVER  # no path is that long
    return _join_jumps(tokens)


def _tokens(pattern: str, pathname: bool) -> list[_Token]:
    tokens: list[_Token] = []
    token: _Token
    at, start_of_wild = 0, literal_length(pattern)
    while at < len(pattern):
        char = pattern[at]
        if char == "*":
            end = next((e for e in range(at, len(pattern)) if pattern[e] != "*"), len(pattern))
            # git strips the literal prefix first, so `**` right behind it counts as standing at the start.
            free = at in (0, start_of_wild) or pattern[at - 1] == "/"
            token, at = _stars(pattern, at, end, free and pathname)
        elif char == "[":
            token, at = _set(pattern, at + 1)
        elif char == "?":
            token, at = "[^/]", at + 1
        else:
            if char == "\\":
                at += 1
            if at == len(pattern):
                raise _Malformed
            token, at = (_Op.SLASH if pattern[at] == "/" else re.escape(pattern[at])), at + 1
        if token is not _Op.ANY_DIRECTORIES or tokens[-1:] != [token]:  # `**/**/` says nothing new
            tokens.append(token)
    return tokens


def _stars(pattern: str, at: int, end: int, free: bool) -> tuple[_Op, int]:
    if end - at > 1 and free:
        if end == len(pattern):
            return _Op.EVERYTHING, end
        if pattern[end] == "/":
            return _Op.ANY_DIRECTORIES, end + 1
        if pattern.startswith("\\/", end):
            return _Op.SOME_DIRECTORIES, end + 2
    return _Op.STAR, end


def _set(pattern: str, at: int) -> tuple[str, int]:
    """The regular expression for the set `[…]` whose content begins at `at`, and the index after the set."""
    negated = pattern[at : at + 1] in ("!", "^")
    at += negated
    members: set[int] = set()
    previous: int | None = None
    first = True
    while first or pattern[at : at + 1] != "]":
        first = False
        if pattern.startswith("[:", at) and (named := _named_class(pattern, at)):
            members |= named[0]
            previous, at = None, named[1]
        elif pattern[at : at + 1] == "-" and previous and pattern[at + 1 : at + 2] not in ("", "]"):
            last, at = _byte(pattern, at + 1)
            members |= _members(previous, last)
            previous = None
        else:
            previous, at = _byte(pattern, at)
            members.add(previous)
    if negated:
        members = set(range(256)) - members
    members.discard(ord("/"))
    body = "".join(f"\\x{member:02x}" for member in sorted(members))
    return f"[{body}]" if body else NEVER, at + 1


def _byte(pattern: str, at: int) -> tuple[int, int]:
    at += pattern[at : at + 1] == "\\"
    if at >= len(pattern):
        raise _Malformed
    return ord(pattern[at]), at + 1


def _named_class(pattern: str, at: int) -> tuple[frozenset[int], int] | None:
    """(the bytes in the class `[:name:]` that begins at index `at` of the pattern, the index after the
    class). None if no valid class begins there, so that `[` is literal."""
    close = pattern.find("]", at + 2)
    if close < 0:
        raise _Malformed
    if close - at < 3 or pattern[close - 1] != ":":
        return None
    name = pattern[at + 2 : close - 1]
    if name not in _CLASSES:
        raise _Malformed
    return _CLASSES[name], close + 1


def _join_jumps(tokens: list[_Token]) -> str:
    """The regular expression for a whole pattern. After a `**/`, the following segments match at the earliest
    directory where they fit; those after the last `**/` match at the end of the path."""
    parts: list[str] = []
    jump, run = "", list[_Token]()
    for token in tokens:
        if isinstance(token, _Op) and token in _JUMPS:
            parts.append(f"(?>{jump}{_join_segments(run)})")
            jump, run = token.value, []
        else:
            run.append(token)
    return "".join(parts) + jump + _join_segments(run)


def _join_segments(tokens: list[_Token]) -> str:
    out: list[str] = []
    segment: list[_Token] = []
    for token in tokens:
        if isinstance(token, _Op) and token is not _Op.STAR:
            out += [_join_stars(segment), token.value]
            segment = []
        else:
            segment.append(token)
    return "".join(out) + _join_stars(segment)


def _join_stars(tokens: list[_Token]) -> str:
    """The regular expression for one segment of a pattern. After a star, the following text matches at its
    earliest position; the text after the last star matches at the end of the segment."""
    runs = [""]
    for token in tokens:
        if isinstance(token, str):
            runs[-1] += token
        else:
            runs.append("")
    head, *middle = runs
    if not middle:
        return head
    *middle, tail = middle
    return head + "".join(f"(?>[^/]*?{run})" for run in middle if run) + "[^/]*" + tail
