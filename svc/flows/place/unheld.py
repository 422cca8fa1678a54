"""Finds seals that only one branch or tag leads to."""

from __future__ import annotations

from localstore.core.limits import PAGE_MAX
from localstore.core.model import history
from localstore.core.model import ref as refs
from localstore.core.model.history import CommitsQuery
from localstore.core.model.ref import RefQuery, RefType
from localstore.core.model.repo import Repo
from svc.flows.place.where import Where

OTHERS = 50  # branches and tags of each kind that are compared


def seals_held_by(where: Where, repo: Repo, kind: RefType, name: str) -> list[str]:
    """Ids of the newest seals of the branch or tag that no other one leads to, the newest first, at most a
    page of them. Empty for the default branch, which nobody can delete, and for one without seals. Raises
    NotFound if there is no such branch or tag."""
    there = where.reader.send(refs.GET, id=repo.id, type=kind, name=name)
    if there.head is None or there.default:
        return []
    heads: list[str] = []
    kinds: tuple[RefType, ...] = ("branch", "tag")
    for other_kind in kinds:
        for ref in where.reader.items(refs.LIST, RefQuery(type=other_kind), limit=OTHERS, id=repo.id):
            if ref.head is not None and (other_kind, ref.name) != (kind, name):
                heads.append(ref.head)
    alone: dict[str, None] | None = None
    for other in dict.fromkeys(heads) or [None]:
        query = CommitsQuery(sha=there.head, without=other)
        only = [seal.id for seal in where.reader.items(history.COMMITS, query, limit=PAGE_MAX, id=repo.id)]
        alone = dict.fromkeys(only if alone is None else (seal_id for seal_id in only if seal_id in alone))
        if not alone:
            return []
    return list(alone or ())
