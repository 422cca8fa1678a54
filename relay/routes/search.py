"""Search over repositories."""

from __future__ import annotations

from typing import Literal

from localstore.core.model.base import Model, Page
from localstore.core.model.repo import Repo
from relay.caller import Caller
from relay.http.routing import route
from relay.service import search


class SearchQuery(Model, frozen=True):
    q: str = ""
    sort: Literal["trending", "recent"] | None = None
    cursor: str | None = None
    limit: int | None = None


@route(
    "GET",
    "/api/v1/search/repos",
    operation="repo.search",
    flag="TR_REPOS_ENABLED",
    returns=Page[Repo],
    cost=5,
)
async def search_repos(caller: Caller, query: SearchQuery) -> Page[Repo]:
    """Repositories by name and description, trending first"""
    return await search.repos(caller, query.q, query.sort, query.cursor, query.limit)
