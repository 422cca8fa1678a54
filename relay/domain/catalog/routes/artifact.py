"""Artifacts of seals."""

from __future__ import annotations

from localstore.core.model.base import Page, PageQuery
from localstore.core.model.catalog import artifact as endpoints
from localstore.core.model.catalog.artifact import Artifact
from relay.caller import View
from relay.domain.catalog import artifact as artifacts
from relay.http.routing import serves


@serves(endpoints.LIST, operation="seal.artifacts", flag="TR_REPOS_ENABLED", cost=10)
async def list_artifacts(view: View, seal_id: str, query: PageQuery) -> Page[Artifact]:
    """The files of a seal that are not text, by path"""
    return await artifacts.page(view, seal_id, query)
