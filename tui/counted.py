"""Requests for the number of items in a tab of a repository, before the tab is opened. Each has one small
answer."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from localstore.core.endpoint import Endpoint
from localstore.core.errors import ServerUnreachable, SvcError, Unauthorized
from localstore.core.model import advisory as advisories
from localstore.core.model import check as checks
from localstore.core.model import issue as issues
from localstore.core.model import proposal as proposals
from localstore.core.model import release as releases
from localstore.core.model.advisory import AdvisoryQuery
from localstore.core.model.base import Page, PageQuery
from localstore.core.model.issue import IssueQuery
from localstore.core.model.proposal import ProposalQuery
from localstore.core.model.repo import Repo
from svc.api import Api
from tui.reads import Read

PAGE = 100  # things that are counted; more are `100+`


class ItemCount(msgspec.Struct, frozen=True):
    """A number of items. `more`: there are more items than this."""

    count: int = 0
    more: bool = False

    def words(self, sign: str = "") -> str:
        """Returns the number as text after `sign`, such as `✗3`, with a `+` at the end if there are more.
        Returns "" for zero."""
        return f"{sign}{self.count}{'+' if self.more else ''}" if self.count else ""


NONE = ItemCount()


def count_open_issues(repo: Repo) -> Read[ItemCount]:
    query = IssueQuery(state="open", limit=PAGE)
    return _of_list(f"repos/{repo.id}/count/issues", issues.LIST, query, id=repo.id)


def count_open_proposals(repo: Repo) -> Read[ItemCount]:
    query = ProposalQuery(state="open", limit=PAGE)
    return _of_list(f"repos/{repo.id}/count/proposals", proposals.LIST, query, id=repo.id)


def count_releases(repo: Repo) -> Read[ItemCount]:
    """Returns a request for the number of releases of a repository."""
    return _of_list(f"repos/{repo.id}/count/releases", releases.LIST, PageQuery(limit=PAGE), id=repo.id)


def count_advisories(repo: Repo) -> Read[ItemCount]:
    """Returns a request for the number of advisories about a repository."""
    query = AdvisoryQuery(repo=repo.full_name, limit=PAGE)
    return _of_list(f"repos/{repo.id}/count/advisories", advisories.LIST, query)


def count_failed_checks(repo: Repo, seal: str) -> Read[ItemCount]:
    """Returns a request for the number of failed checks of a seal. Cancelled ones are not counted."""

    def call(api: Api) -> ItemCount:
        of_seal = api.send(checks.OF_SEAL, id=repo.id, seal_id=seal)
        return ItemCount(sum(check.state == "fail" for check in of_seal.items))

    return _quiet(f"repos/{repo.id}/count/failed/{seal}", call)


def _of_list(key: str, endpoint: Endpoint[Page[Any]], query: Any, **path: str) -> Read[ItemCount]:
    """Returns a request for the number of rows on the first page of a list. `key`: its key in the cache."""

    def call(api: Api) -> ItemCount:
        page = api.send(endpoint, query=query, **path)
        return ItemCount(len(page.items), page.next_cursor is not None)

    return _quiet(key, call)


def _quiet(key: str, call: Callable[[Api], ItemCount]) -> Read[ItemCount]:
    """Returns a request for a count. If the server refuses the request, the answer is NONE (no items) and not
    an error. The tab shows the reason when it is opened."""

    def count(api: Api) -> ItemCount:
        try:
            return call(api)
        except (ServerUnreachable, Unauthorized):
            raise
        except SvcError:
            return NONE

    return Read(key, ItemCount, count)
