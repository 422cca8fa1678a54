"""Merges lines that both sides of a merge added to a text at the same place."""

from __future__ import annotations

import re
from functools import cache
from typing import NamedTuple


class _Kind(NamedTuple):
    """How an item of a list begins. Items of one list begin alike. `lead`: the first mark or word of the
    item, b"" if it has none."""

    indent: bytes
    lead: bytes


BULLETS = (b"-", b"*", b"+")


def both_added(theirs: list[bytes], mine: list[bytes], near: list[bytes]) -> bytes | None:
    """The lines that both sides added at one place, joined; None if they conflict. `near`: the lines before
    and after that place.

    If one side added all lines of the other in the same order, its lines are the result. Otherwise two
    conditions must hold: all added lines continue a list to which a line of `near` belongs, and no item has
    the same name on both sides. Then the result is `theirs`, followed by `mine`."""
    return _larger(theirs, mine) or _join_lists(theirs, mine, near)


def _larger(theirs: list[bytes], mine: list[bytes]) -> bytes | None:
    less, more = sorted((theirs, mine), key=len)
    rest = iter(more)
    return b"".join(more) if all(line in rest for line in less) else None


def _join_lists(theirs: list[bytes], mine: list[bytes], near: list[bytes]) -> bytes | None:
    added = [*theirs, *mine]
    kinds = {_kind(line) for line in added}
    if len(kinds) != 1 or kinds.isdisjoint(map(_kind, near)):
        return None
    kind = kinds.pop()
    if kind is None or (len(added) > 2 and not _is_list(kind)):
        return None
    names = [{_name(line, kind) for line in side} for side in (theirs, mine)]
    if names[0] & names[1] or not theirs[-1].endswith(b"\n"):
        return None
    return b"".join(added)


def _kind(line: bytes) -> _Kind | None:
    """The kind of the line as an item of a list: its indentation, and its bullet or first word. None for an
    empty line."""
    match = _line().match(line)
    return _Kind(match["indent"], match["word"] or match["mark"] or b"") if match else None


@cache
def _line() -> re.Pattern[bytes]:
    words = rb"#include|import|from|use|export"
    return re.compile(rb"(?P<indent>[ \t]*)(?:(?P<mark>[^\w\s]+)|(?P<word>(?:%b)\b)|\w|[\x80-\xff])" % words)


def _is_list(kind: _Kind) -> bool:
    """Whether lines of this kind are a list whose order does not matter."""
    return bool(kind.lead)


def _name(line: bytes, kind: _Kind) -> bytes:
    """The part of a list item that no other item of the list may repeat. For a bullet or an import this is
    the whole line, for other items the first word."""
    if kind.lead in BULLETS or kind.lead[-1:].isalpha():
        return line.strip()
    match = re.match(rb"\W*[\w.-]*", line.strip())
    return match[0] if match else b""
