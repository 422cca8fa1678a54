"""Finds the seals that only one branch or tag leads to. Once that branch or tag is deleted, these seals can
be found only by their ids."""

from __future__ import annotations

from localstore.core.model import history
from localstore.core.model import ref as refs
from localstore.core.model.history import CommitsQuery
from localstore.core.model.limits import PAGE_MAX
from localstore.core.model.ref import RefQuery, RefType
from localstore.core.model.repo import Repo
from svc.flows.place.where import Where

OTHERS = 50  # branches and tags of each kind that are looked at
COMPARED = 20  # of them that are compared, one request each


def seals_held_by(where: Where, repo: Repo, kind: RefType, name: str) -> list[str]:
    """Return the ids of the seals that no other branch or tag leads to, newest first, at most one page. The
    list is empty for the default branch, which cannot be deleted, and for a branch without seals.

    At most COMPARED other branches and tags are compared. Others may also lead to some of the listed seals.
    Raises NotFound if there is no such branch or tag."""
    ref_held = where.reader.send(refs.GET, id=repo.id, type=kind, name=name)
    if ref_held.head is None or ref_held.default:
        return []
    heads: list[str] = []
    default: str | None = None
    kinds: tuple[RefType, ...] = ("branch", "tag")
    for other_kind in kinds:
        for ref in where.reader.items(refs.LIST, RefQuery(type=other_kind), limit=OTHERS, id=repo.id):
            if ref.head is not None and (other_kind, ref.name) != (kind, name):
                default = ref.head if ref.default else default
                heads.append(ref.head)
    alone = _newest(where, repo, CommitsQuery(sha=ref_held.head, without=default))
    if not alone:
        return []
    # what the default branch leads to leads to no more than it does
    held = set(_newest(where, repo, CommitsQuery(sha=default))) if default is not None else set()
    others = [head for head in dict.fromkeys(heads) if head != default and head not in held]
    for other in others[:COMPARED]:
        if not alone:
            return []
        only = set(_newest(where, repo, CommitsQuery(sha=ref_held.head, without=other)))
        alone = [seal for seal in alone if seal in only]
    return alone


def _newest(where: Where, repo: Repo, query: CommitsQuery) -> list[str]:
    """Return the ids of one page of seals, newest first."""
    return [seal.id for seal in where.reader.items(history.COMMITS, query, limit=PAGE_MAX, id=repo.id)]
