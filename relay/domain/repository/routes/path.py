"""The path policy of a repository."""

from __future__ import annotations

from localstore.core.model.base import Page, PageQuery
from localstore.core.model.collaboration import path as endpoints
from localstore.core.model.collaboration.path import PathChange, PathRule, PathRuleRemove, PathRuleSet
from relay.caller import View
from relay.domain.repository import path as paths
from relay.http.routing import Reply, serves


@serves(endpoints.LIST, operation="path.list")
async def list_paths(view: View, query: PageQuery) -> Page[PathRule]:
    """Rules for paths, by path"""
    return await paths.page(view, query)


@serves(endpoints.SET, operation="path.set", errors=(409, 501))
async def set_path(view: View, body: PathRuleSet) -> PathRule:
    """Set who sees a path and everything below it"""
    return await paths.put(view, body)


@serves(endpoints.REMOVE, operation="path.remove", errors=(409,))
async def remove_path(view: View, query: PathRuleRemove) -> Reply:
    """Remove the rule for a path"""
    await paths.remove(view, query.path)
    return Reply(status=204)


@serves(endpoints.TIMELINE, operation="path.timeline")
async def path_timeline(view: View, query: PageQuery) -> Page[PathChange]:
    """Changes of the rules for paths, newest first"""
    return await paths.timeline(view, query)
