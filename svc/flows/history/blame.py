"""Who last changed each line of a file."""

from __future__ import annotations

import msgspec

from localstore.core.errors import NotFound, ServerMisbehaved
from localstore.core.limits import TEXT_FILE
from localstore.core.model import history
from localstore.core.model.history import Blame
from svc.flows.place.refs import default_ref, seal_of
from svc.flows.place.where import Where


class BlamedLine(msgspec.Struct, frozen=True):
    """One line, numbered from 1, and the seal that brought it. `sealed_at`: RFC 3339."""

    line: int
    seal_id: str
    author: str
    sealed_at: str
    text: str


def blame(where: Where, path: str, ref: str = "") -> list[BlamedLine]:
    """The lines of the file at `path`, as people type it here, in a branch, tag or seal; empty: what the
    folder is on. Raises NotFound if it is not there."""
    repo = where.readable_repo
    seal = seal_of(where, repo, ref or default_ref(where, repo))
    named = where.path_in_repo(path)
    try:
        found = where.reader.send(history.BLAME, id=repo.id, seal_id=seal, path=named)
        text = where.reader.history.raw(repo.id, seal, named, TEXT_FILE)
    except NotFound:
        raise NotFound(
            f"{named} is not in the seal {seal[:12]}; svc status tells whether it waits for a push, "
            f"svc log --path {named} whether it was ever there"
        ) from None
    return blamed_lines(found, text)


def blamed_lines(found: Blame, text: bytes) -> list[BlamedLine]:
    """The ranges that the relay sent, line by line. Raises ServerMisbehaved for lines that the text does not
    have."""
    lines = text.decode("utf-8", "replace").split("\n")
    blamed = []
    for part in found.ranges:
        if not 1 <= part.start <= part.end <= len(lines):
            raise ServerMisbehaved("the server blames lines that the file does not have")
        author = part.who.handle or part.who.id
        blamed += [
            BlamedLine(number, part.seal_id, author, part.sealed_at, lines[number - 1])
            for number in range(part.start, part.end + 1)
        ]
    return blamed
