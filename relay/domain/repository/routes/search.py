"""Search over repositories."""

from __future__ import annotations

from localstore.core.model import repo as endpoints
from localstore.core.model.base import Page
from localstore.core.model.repo import Repo, SearchQuery
from relay.caller import Caller
from relay.domain.repository import search
from relay.http.routing import serves


@serves(endpoints.SEARCH, operation="repo.search", flag="TR_REPOS_ENABLED", cost=5)
async def search_repos(caller: Caller, query: SearchQuery) -> Page[Repo]:
    """Repositories by name and description, trending first"""
    return await search.repos(caller, query.q, query.sort, query.cursor, query.limit)
