"""Joining lines that two sides added at the same place."""

from __future__ import annotations

import re
from functools import cache
from typing import NamedTuple


class _Kind(NamedTuple):
    """What items of one list have in common: their indentation, and the sign or word that they begin with."""

    indent: bytes
    lead: bytes


BULLETS = (b"-", b"*", b"+")


def both_added(theirs: list[bytes], mine: list[bytes], near: list[bytes]) -> bytes | None:
    """The lines of both sides, None if they stand against each other. `near`: the lines before and behind.

    One side's lines are the answer if they hold the other's, in order. Otherwise theirs, then mine, if all
    are items of the list that a line of `near` belongs to, and no item of one side has the name of one of the
    other.
    """
    return _larger(theirs, mine) or _listed(theirs, mine, near)


def _larger(theirs: list[bytes], mine: list[bytes]) -> bytes | None:
    less, more = sorted((theirs, mine), key=len)
    rest = iter(more)
    return b"".join(more) if all(line in rest for line in less) else None


def _listed(theirs: list[bytes], mine: list[bytes], near: list[bytes]) -> bytes | None:
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
    """None for a line without an item: an empty one."""
    found = _line().match(line)
    return _Kind(found["indent"], found["word"] or found["mark"] or b"") if found else None


@cache
def _line() -> re.Pattern[bytes]:
    words = rb"#include|import|from|use|export"
    return re.compile(rb"(?P<indent>[ \t]*)(?:(?P<mark>[^\w\s]+)|(?P<word>(?:%b)\b)|\w|[\x80-\xff])" % words)


def _is_list(kind: _Kind) -> bool:
    """Whether several lines of this kind are a list, and not steps of which the order matters."""
    return bool(kind.lead)


def _name(line: bytes, kind: _Kind) -> bytes:
    """What must differ between the items: all of a bullet or an import, the first word of others."""
    if kind.lead in BULLETS or kind.lead[-1:].isalpha():
        return line.strip()
    found = re.match(rb"\W*[\w.-]*", line.strip())
    return found[0] if found else b""
