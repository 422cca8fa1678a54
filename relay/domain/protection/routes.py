"""Protection rules of a repository."""

from __future__ import annotations

from localstore.core.model.base import Page, PageQuery
from localstore.core.model.collaboration import protection as endpoints
from localstore.core.model.collaboration.protection import Protection, ProtectionSet
from relay.caller import View
from relay.domain.protection import protection as rules
from relay.http.routing import Reply, serves


@serves(endpoints.LIST, operation="protection.list")
async def list_protections(view: View, query: PageQuery) -> Page[Protection]:
    """Protection rules by pattern"""
    return await rules.page(view, query)


@serves(endpoints.SET, operation="protection.set", errors=(409,))
async def set_protection(view: View, pattern: str, body: ProtectionSet) -> Protection:
    """Protect the branches of a pattern"""
    return await rules.put(view, pattern, body)


@serves(endpoints.CLEAR, operation="protection.clear")
async def clear_protection(view: View, pattern: str) -> Reply:
    """Remove the protection rule of a pattern"""
    await rules.clear(view, pattern)
    return Reply(status=204)
