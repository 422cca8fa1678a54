"""Branches and tags as people name them on the command line."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NoReturn

from localstore.core.encoding import is_hex_digest
from localstore.core.errors import NotFound, UsageError
from localstore.core.model import Repo
from svc.cmd.context import Ctx

ABBREVIATION = re.compile("[0-9a-f]{7,63}")
SEALS_SEARCHED = 1000  # newest seals in which a shortened id is looked for


def head_of(ctx: Ctx, repo: Repo, ref: str) -> str:
    """The seal id that a branch, tag or seal id names."""
    if is_hex_digest(ref):
        return ref
    for found in ctx.reader.ref.list(repo.id):
        if found.name == ref:
            if found.head is None:
                raise NotFound(f"{ref} has no seals yet; make one: svc push -m MESSAGE")
            return found.head
    return abbreviated(ctx, repo, ref) or _missing(repo, ref)


def abbreviated(ctx: Ctx, repo: Repo, typed: str) -> str | None:
    """The newest seal of this branch whose id begins as typed: terminals show twelve characters of an id.
    UsageError when two do."""
    if not ABBREVIATION.fullmatch(typed):
        return None
    seals = ctx.reader.history.commits(repo.id, ref=ctx.branch_of(repo), limit=SEALS_SEARCHED)
    found = [seal.id for seal in seals if seal.id.startswith(typed)]
    if len(found) > 1:
        raise UsageError(f"more than one seal begins with {typed}; give more of its id")
    return found[0] if found else None


def _missing(repo: Repo, ref: str) -> NoReturn:
    raise NotFound(
        f"{repo.full_name} has no branch, tag or seal {ref}; see: svc repo branch, svc repo tag list, svc log"
    )


@contextmanager
def naming(repo: Repo, what: str, remedy: str) -> Iterator[None]:
    """The server's constant 404 about something in `repo`, which the caller may see, as a sentence."""
    try:
        yield
    except NotFound:
        raise NotFound(f"{repo.full_name} has no {what}; see: {remedy}") from None
