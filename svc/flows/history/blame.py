"""Finds who last changed each line of a file."""

from __future__ import annotations

import re
from collections.abc import Sequence

import msgspec

from localstore.core.errors import NotFound, ServerMisbehaved, UsageError
from localstore.core.model import history
from localstore.core.model.history import Blame, BlameQuery
from localstore.core.model.limits import TEXT_FILE
from localstore.core.words import count
from svc.flows.place.refs import default_ref, seal_of
from svc.flows.place.where import Where

_SPAN = re.compile(r"([1-9][0-9]{0,8})?(?:(,)(\+)?([1-9][0-9]{0,8})?)?", re.ASCII)


class BlamedLine(msgspec.Struct, frozen=True):
    """A line of a file, numbered from 1, and the seal that added it. `sealed_at` is an RFC 3339 time."""

    line: int
    seal_id: str
    author: str
    sealed_at: str
    text: str


def blame(where: Where, path: str, ref: str = "", *, first_parent: bool = False) -> list[BlamedLine]:
    """Return the lines of a file, each with the seal that added it. `path` is relative to the current folder.
    `ref` is a branch, tag or seal; "" means the branch or seal of the folder. With `first_parent`, lines that
    a merge brought in are attributed to the merge. Raises NotFound if there is no such file."""
    repo = where.readable_repo
    seal = seal_of(where, repo, ref or default_ref(where, repo))
    named = where.path_in_repo(path)
    try:
        answer = where.reader.send(
            history.BLAME, query=BlameQuery(first_parent=first_parent), id=repo.id, seal_id=seal, path=named
        )
        text = where.reader.history.raw(repo.id, seal, named, TEXT_FILE)
    except NotFound:
        raise NotFound(
            f"{named} is not in the seal {seal[:12]}; svc status tells whether it waits for a push, "
            f"svc log --path {named} whether it was ever there"
        ) from None
    return blamed_lines(answer, text)


def blamed_lines(answer: Blame, text: bytes) -> list[BlamedLine]:
    """Return the lines of `text`, each with its seal from the relay's answer. The answer names a seal for
    each range of lines. Raises ServerMisbehaved for line numbers beyond the text."""
    lines = text.decode("utf-8", "replace").split("\n")
    blamed = []
    for part in answer.ranges:
        if not 1 <= part.start <= part.end <= len(lines):
            raise ServerMisbehaved("the server blames lines that the file does not have")
        author = part.who.handle or part.who.id
        blamed += [
            BlamedLine(number, part.seal_id, author, part.sealed_at, lines[number - 1])
            for number in range(part.start, part.end + 1)
        ]
    return blamed


def span_of(typed: str) -> tuple[int, int | None]:
    """Return (first line, last line) for a range that the user typed as `FIRST,LAST`, `FIRST,+COUNT`,
    `FIRST,` or `,LAST`. A last line of None means the end of the file. A number alone means one line. Raises
    UsageError for other texts."""
    match = _SPAN.fullmatch(typed)
    if match is None or not (match[1] or match[4]) or (match[3] and not (match[1] and match[4])):
        raise UsageError(f"{typed} names no lines; say FIRST,LAST or FIRST,+COUNT: -L 40,60")
    first = int(match[1] or 1)
    if match[2] is None:
        return first, first
    if match[4] is None:
        return first, None
    last = first + int(match[4]) - 1 if match[3] else int(match[4])
    if last < first:
        raise UsageError(f"{typed} ends before it begins; say -L {last},{first}")
    return first, last


def within(lines: Sequence[BlamedLine], span: tuple[int, int | None], name: str) -> list[BlamedLine]:
    """Return the lines that are in the span. Raises NotFound if the file ends before the span. `name` is the
    file's name for the error."""
    first, last = span
    if first > len(lines):
        many = count(len(lines), "line")
        raise NotFound(f"{name} has {many}, and -L begins at line {first}")
    return list(lines[first - 1 : last])
