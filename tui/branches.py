"""Compares the branches and tags of a repository with its default branch: the seals at their heads, and how
many seals one side has and the other lacks."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import NamedTuple, TypeVar

import msgspec

from localstore.core.errors import SvcError
from localstore.core.model import history as histories
from localstore.core.model.history import CommitsQuery, SealSummary
from localstore.core.model.ref import Ref
from svc.api import Api
from tui.client import Client
from tui.reads import Read

T = TypeVar("T")

NEWEST = 200  # seals of the default branch among which other branches begin
AHEAD = 50  # seals that a branch has and the default branch has not, as far as they are counted
BRANCHES = 60  # branches and tags that are looked at


class DatedSeal(msgspec.Struct, frozen=True, gc=False):
    """A seal with its time (`at`), the handle of its author (`who`), and all its parents (`parents`), which
    are several if the seal is a merge."""

    id: str
    parents: tuple[str, ...]
    who: str
    at: str


class Divergence(msgspec.Struct, frozen=True, gc=False):
    """A comparison of a head with another seal. `head`: the seal at the head. `beyond`: the newest seals in
    the history of the head that are not in the history of the other seal."""

    head: DatedSeal
    beyond: tuple[DatedSeal, ...]


class Standing(NamedTuple):
    """The comparison of a branch or tag with the default branch. `who`, `at`: author and time of the seal at
    its head. `ahead`: how many seals it has and the default branch lacks. `behind`: how many seals it lacks
    and the default branch has. Both are None while unknown. `more`: the branch is ahead by more than `ahead`
    seals."""

    who: str
    at: str
    ahead: int | None = None
    behind: int | None = None
    more: bool = False


def _read_seals(seals: Iterable[SealSummary]) -> list[DatedSeal]:
    return [
        DatedSeal(
            seal.id,
            (*seal.parents, *seal.provenance.merged),
            seal.provenance.who.handle or "?",
            seal.created_at,
        )
        for seal in seals
    ]


def newest(repo_id: str, head: str) -> Read[list[DatedSeal]]:
    """Returns a request for the seal `head` and the newest seals of its history."""
    query = CommitsQuery(sha=head)

    def call(api: Api) -> list[DatedSeal]:
        return _read_seals(api.items(histories.COMMITS, query, limit=NEWEST, id=repo_id))

    return Read(f"repos/{repo_id}/newest/{head}", list[DatedSeal], call, final=True)


def apart(repo_id: str, head: str, base: str) -> Read[Divergence]:
    """Returns a request for the seal `head`, and for those seals in its history that are not in the history
    of the seal `base`."""
    beyond, alone = CommitsQuery(sha=head, without=base), CommitsQuery(sha=head)

    def call(api: Api) -> Divergence:
        seals = _read_seals(api.items(histories.COMMITS, beyond, limit=AHEAD + 1, id=repo_id))
        own = seals[:1] or _read_seals(api.items(histories.COMMITS, alone, limit=1, id=repo_id))
        return Divergence(own[0], tuple(seals))

    return Read(f"repos/{repo_id}/apart/{head}/{base}", Divergence, call, final=True)


def standings(client: Client, repo_id: str, refs: Sequence[Ref]) -> dict[str, Standing]:
    """Returns how the heads of these branches and tags compare with the default branch, by the id of the seal
    at the head. A head is left out if the server does not answer for it. What is not cached is requested from
    the server, so call this on a thread."""
    base = next((ref.head for ref in refs if ref.default), None)
    if base is None:
        return {}
    standing: dict[str, Standing] = {}
    with suppress(SvcError):
        main = {seal.id: seal for seal in _read(client, newest(repo_id, base))}
        for head in dict.fromkeys(ref.head for ref in refs[:BRANCHES] if ref.head is not None):
            if head in main:
                seal, behind = main[head], len(main) - len(_ancestors([head], main))
                standing[head] = Standing(seal.who, seal.at, 0, behind)
            else:
                standing[head] = _beyond(_read(client, apart(repo_id, head, base)), main)
    return standing


def _read(client: Client, read: Read[T]) -> T:
    value, _ = client.read_cached(read) or client.fetch(read)
    return value


def _beyond(apart: Divergence, main: Mapping[str, DatedSeal]) -> Standing:
    """Returns the comparison of a head with the default branch, for a head that is not among the newest seals
    of that branch. `apart`: which seals only the head has. `main`: the newest seals of the default branch, by
    id."""
    own = {seal.id for seal in apart.beyond}
    ahead, more = min(len(own), AHEAD), len(own) > AHEAD
    begins = [parent for seal in apart.beyond for parent in seal.parents if parent not in own]
    counts_behind = bool(begins) and not more and all(parent in main for parent in begins)
    behind = len(main) - len(_ancestors(begins, main)) if counts_behind else None
    return Standing(apart.head.who, apart.head.at, ahead, behind, more)


def _ancestors(begins: Iterable[str], main: Mapping[str, DatedSeal]) -> set[str]:
    """Returns the ids of the seals `begins` and of all their ancestors, as far as they are in `main`. `main`:
    the newest seals of the default branch, by id."""
    reached, waiting = set(), [seal for seal in begins if seal in main]
    while waiting:
        seal = waiting.pop()
        if seal not in reached:
            reached.add(seal)
            waiting += [parent for parent in main[seal].parents if parent in main]
    return reached
