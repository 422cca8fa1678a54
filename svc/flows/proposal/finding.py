"""Finds the repository whose proposals a command is about, and the proposal that the user named.

In the folder of a fork, the repository is the fork's parent if the user can see it. The option -R can name
another one."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Final, Literal, NamedTuple

import msgspec

from localstore.core.errors import NotFound, SvcError, UsageError
from localstore.core.model import issue as issues
from localstore.core.model import proposal as proposals
from localstore.core.model.proposal import Proposal, ProposalQuery
from localstore.core.model.repo import Repo
from svc.api import Api
from svc.flows.place.where import Where
from svc.http.checked import require_valid

LIST = "svc pr list"
STATES: Final[tuple[Literal["open", "all"], ...]] = ("open", "all")
LOOKED_AT = 500  # proposals of branches with one name, of which those of a fork are picked
_NUMBER = re.compile(r"(?:#|pr:|https?://\S*[/=])?([1-9][0-9]{0,17})")
_HEAD = re.compile(r"(?P<owner>[^/:\s]+)(?:/(?P<name>[^/:\s]+))?:(?P<branch>[^:\s]+)")


class RepositoryName(NamedTuple):
    """The owner and the name of a repository. If the name is empty, all repositories of the owner are
    meant."""

    owner: str
    name: str


class ProposalPlace(msgspec.Struct, frozen=True):
    """Where proposals are. `repo` is the repository that has them. `fork` is the folder's repository, if
    `repo` is its parent."""

    repo: Repo
    fork: Repo | None = None

    @property
    def elsewhere(self) -> str:
        """The end of a sentence that says how to see the fork's own proposals; "" without a fork."""
        if self.fork is None:
            return ""
        return f"; for proposals of this folder's fork: -R {self.fork.full_name}"


def place_of(where: Where, connect: Callable[[], Api]) -> ProposalPlace:
    """Return the repository whose proposals the command is about. For the folder of a fork this is the
    repository that was forked. Raises UsageError if `--queue` is used in the folder of a fork."""
    repo = where.repo(connect)
    if where.named_repo is not None:
        return ProposalPlace(repo)
    if where.queues and repo.class_ == "public_fork":
        raise UsageError(
            f"--queue asks no server, and proposals of the fork {repo.full_name} are in the repository that "
            "it was forked from; omit --queue"
        )
    if repo.parent is not None:
        with suppress(NotFound):  # it was deleted or hidden since
            return ProposalPlace(connect().repo.find_linked(repo.parent.id, repo.parent.full_name), repo)
    return ProposalPlace(repo)


def number_in(typed: str) -> str | None:
    """Return the number of a proposal from the text, which may be the number itself or an address. None if it
    is neither."""
    number = _NUMBER.fullmatch(typed.strip())
    return None if number is None else number[1]


def find(where: Where, api: Api, place: ProposalPlace, typed: str) -> Proposal:
    """Return the proposal with this number, address or branch. If `typed` is "", it is the proposal of this
    folder's branch. If a branch has several proposals, it is the open one, else the newest. Raises
    NotFound."""
    repo, fork = place.repo, place.fork
    number = number_in(typed)
    if number is not None:
        with explain_missing_proposal(api, repo, number, place.elsewhere):
            return api.send(proposals.GET, id=repo.id, n=number)
    head = _HEAD.fullmatch(typed)
    branch = head["branch"] if head else typed or where.branch_of(fork or repo)
    places: list[RepositoryName | None] = [None]
    if head is not None:
        places = [RepositoryName(head["owner"].lower(), (head["name"] or "").lower())]
    elif fork is not None:
        mine = RepositoryName(fork.owner, fork.name)
        places = [mine, None] if typed else [mine]
    for of in places:
        for state in STATES:
            for proposal in from_branch(api, repo, branch, state, of):
                return api.send(proposals.GET, id=repo.id, n=str(proposal.number))
    origin = typed or (f"{fork.full_name}:{branch}" if fork else branch)
    raise NotFound(
        f"no proposal of {repo.full_name} comes from branch {origin}; "
        f"open one: svc pr create{place.elsewhere}"
    )


def from_branch(
    api: Api,
    repo: Repo,
    branch: str,
    state: Literal["open", "all"] = "open",
    of: RepositoryName | None = None,
) -> Iterator[Proposal]:
    """Yields the proposals whose proposed branch is `branch`, newest first. With `of`, only proposals whose
    branch is in that repository."""
    query = require_valid(ProposalQuery(head=branch, state=state))
    for proposal in api.items(proposals.LIST, query, limit=1 if of is None else LOOKED_AT, id=repo.id):
        if of is None:
            yield proposal
        elif proposal.head_repo is not None:
            owner, _, name = proposal.head_repo.full_name.partition("/")
            if owner == of.owner and of.name in ("", name):
                yield proposal


def open_in_both(api: Api, place: ProposalPlace, proposal: Proposal) -> bool:
    """Return whether the number of a proposal is ambiguous in the folder of a fork. That is so if `proposal`,
    in the repository that was forked, is open, and the fork has an open proposal with the same number."""
    if place.fork is None or proposal.state != "open":
        return False
    try:
        return api.send(proposals.GET, id=place.fork.id, n=str(proposal.number)).state == "open"
    except NotFound:
        return False


@contextmanager
def explain_missing_proposal(api: Api, repo: Repo, number: str, more: str = "") -> Iterator[None]:
    """A context that explains why a proposal was not found. If the server gave no reason for a NotFound, the
    error says instead that no proposal has this number, or that the number belongs to an issue. `more` is
    added at the end of the error's sentence."""
    try:
        yield
    except NotFound as error:
        if not error.bare:
            raise
        if _is_issue(api, repo, number):
            raise NotFound(
                f"#{number} of {repo.full_name} is an issue; see: svc issue view {number}"
            ) from None
        raise NotFound(f"{repo.full_name} has no proposal #{number}; see: {LIST}{more}") from None


def _is_issue(api: Api, repo: Repo, number: str) -> bool:
    with suppress(SvcError):
        api.send(issues.GET, id=repo.id, n=number)
        return True
    return False
