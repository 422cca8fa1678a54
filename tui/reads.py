"""The app's requests for data. Each says what the cache needs to know: its key, the type of the answer, and
whether the answer can change.

    client.fetch(reads.repos("alice"))

The requests of this module are about the account and are made first. Requests for a repository's contents are
in `tui.contents`."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any, Generic, NamedTuple, TypeVar

from localstore.core.errors import Forbidden, NotFound
from localstore.core.model import inbox as inbox_
from localstore.core.model import repo as repos_
from localstore.core.model.inbox import InboxItem, InboxQuery
from localstore.core.model.repo import Repo, RepoQuery
from svc.api import Api

T = TypeVar("T")

REPOS = 500  # repositories that a list holds
INBOX = 500


class Read(NamedTuple, Generic[T]):
    """A request for data. `key`: its key in the cache. `shape`: the type of the answer. `call`: makes the
    request. `final`: the answer never changes."""

    key: str
    shape: Any
    call: Callable[[Api], T]
    final: bool = False


def repos(account: str, of_folder: str = "") -> Read[list[Repo]]:
    """Returns a request for the repositories in which the account has a role. Without an account, the request
    is for the public repositories. `of_folder`: id of the repository that belongs to the linked folder. It is
    added to the answer."""

    def call(api: Api) -> list[Repo]:
        repos = list(api.items(repos_.LIST, RepoQuery(mine=bool(account)), limit=REPOS))
        if of_folder and of_folder not in {repo.id for repo in repos}:
            with suppress(NotFound):
                repos.insert(0, api.send(repos_.GET, id=of_folder))
        return repos

    return Read(f"repos/{of_folder}", list[Repo], call)


def visible_repos() -> Read[list[Repo]]:
    """Returns a request for every repository that the account may see."""
    return Read("visible_repos", list[Repo], lambda api: list(api.items(repos_.LIST, limit=REPOS)))


def repo(repo_id: str) -> Read[Repo]:
    return Read(f"repos/{repo_id}/itself", Repo, lambda api: api.send(repos_.GET, id=repo_id))


def offered_repo(repo_id: str) -> Read[list[Repo]]:
    """Returns a request for a repository that somebody offers to the account. The answer is [] if the account
    may not see the repository yet."""

    def call(api: Api) -> list[Repo]:
        try:
            return [api.send(repos_.GET, id=repo_id)]
        except (Forbidden, NotFound):
            return []

    return Read(f"repos/{repo_id}/offered", list[Repo], call)


def whole_inbox() -> Read[list[InboxItem]]:
    """Returns a request for the rows of the inbox, also those that are done."""
    query = InboxQuery(all=True)
    return Read("inbox/all", list[InboxItem], lambda api: list(api.items(inbox_.LIST, query, limit=INBOX)))


def inbox() -> Read[list[InboxItem]]:
    return Read("inbox", list[InboxItem], lambda api: list(api.items(inbox_.LIST, limit=INBOX)))
