"""Branches and tags, moved by compare-and-swap."""

from __future__ import annotations

from localstore.core.model import ref as endpoints
from localstore.core.model.base import Page
from localstore.core.model.ref import Ref, RefCreate, RefDelete, RefQuery, RefUpdate
from relay.caller import View
from relay.domain.repository import ref as refs
from relay.http.routing import Reply, serves


@serves(endpoints.LIST, operation="ref.list")
async def list_refs(view: View, query: RefQuery) -> Page[Ref]:
    """Branches and tags by name"""
    return await refs.page(view, query.type, query.cursor, query.limit)


@serves(endpoints.CREATE, operation="ref.create", errors=(409,))
async def create_ref(view: View, body: RefCreate) -> Ref:
    """Create a branch or tag; its head is validated in the same transaction"""
    return await refs.create(view, body)


@serves(endpoints.GET, operation="ref.get")
async def get_ref(view: View, type: str, name: str) -> Ref:
    """One branch or tag"""
    return await refs.get(view, type, name)


@serves(endpoints.UPDATE, operation="ref.update", errors=(409,))
async def update_ref(view: View, type: str, name: str, body: RefUpdate) -> Ref:
    """Move a branch by compare-and-swap"""
    return await refs.update(view, type, name, body)


@serves(endpoints.DELETE, operation="ref.delete", errors=(409,))
async def delete_ref(view: View, type: str, name: str, query: RefDelete) -> Reply:
    """Delete a branch or tag; seals stay reachable by id"""
    await refs.delete(view, type, name, query.expected_head, query.discard_live)
    return Reply(status=204)
