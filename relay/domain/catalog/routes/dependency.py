"""What a repository depends on, and what depends on it."""

from __future__ import annotations

from localstore.core.model.base import Page, PageQuery
from localstore.core.model.catalog import dependency as endpoints
from localstore.core.model.catalog.dependency import Dependencies, DependencyQuery, Dependent
from relay.caller import View
from relay.domain.catalog import dependency, dependents
from relay.http.routing import serves

FLAG = "TR_REPOS_ENABLED"


@serves(endpoints.LIST, operation="repo.dependencies", flag=FLAG, cost=10)
async def list_dependencies(view: View, query: DependencyQuery) -> Dependencies:
    """What a repository depends on, by its manifests at a seal"""
    return await dependency.of(view, query.ref)


@serves(endpoints.DEPENDENTS, operation="repo.dependents", flag=FLAG)
async def list_dependents(view: View, query: PageQuery) -> Page[Dependent]:
    """Repositories whose default branch depends on this one"""
    return await dependents.page(view, query)
