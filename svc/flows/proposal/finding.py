"""Finds the proposal that a user names by number, address or branch, or not at all."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final, Literal

from localstore.core.errors import NotFound
from localstore.core.model.collaboration import proposal as proposals
from localstore.core.model.collaboration.proposal import Proposal, ProposalQuery
from localstore.core.model.repo import Repo
from svc.api import Api
from svc.flows.place.refs import explained_not_found
from svc.flows.place.where import Where
from svc.http.checked import checked

LIST = "svc pr list"
STATES: Final[tuple[Literal["open", "all"], ...]] = ("open", "all")
_NUMBER = re.compile(r"(?:#|pr:|https?://\S*[/=])?([1-9][0-9]{0,17})")


def find(where: Where, api: Api, repo: Repo, typed: str) -> Proposal:
    """The proposal of a number, an address or a head branch; for an empty word that of this folder's branch.
    Of several, the open one, else the newest. Raises NotFound."""
    number = _NUMBER.fullmatch(typed.strip())
    if number is not None:
        with known(repo, number[1], elsewhere(where, repo)):
            return api.send(proposals.GET, id=repo.id, n=number[1])
    branch = typed or where.branch_of(repo)
    for state in STATES:
        query = checked(ProposalQuery(head=branch, state=state))
        for one in api.items(proposals.LIST, query, limit=1, id=repo.id):
            return api.send(proposals.GET, id=repo.id, n=str(one.number))
    raise NotFound(
        f"no proposal of {repo.full_name} comes from branch {branch}; open one: svc pr create"
        f"{elsewhere(where, repo)}"
    )


def elsewhere(where: Where, repo: Repo) -> str:
    """The end of a sentence that names the repository where the proposals of a fork are; else empty."""
    if repo.parent is None or where.named_repo is not None:
        return ""
    parent = repo.parent.full_name
    return f"; {repo.full_name} is a fork: proposals to {parent} are there, add -R {parent}"


@contextmanager
def known(repo: Repo, number: str, more: str = "") -> Iterator[None]:
    """Raise NotFound with a sentence about the proposal, and `more`, for a bare 404 of the server."""
    with explained_not_found(repo, f"proposal #{number}", f"{LIST}{more}"):
        yield
