"""Branches and tags: moved by compare-and-swap, never silently."""

from __future__ import annotations

from localstore.core.model import Page, Ref
from localstore.core.model.base import Model
from localstore.core.model.ref import RefCreate, RefType, RefUpdate
from relay.caller import View
from relay.http.routing import Read, Reply, Write, route
from relay.service import ref as refs
from relay.service.once import Once

FLAG = "TR_REPOS_ENABLED"


class RefQuery(Model, frozen=True):
    """`type` absent lists branches, then tags."""

    type: RefType | None = None
    cursor: str | None = None
    limit: int | None = None


class DeleteQuery(Model, frozen=True):
    """`discard_live`: also drop edits that no seal holds."""

    discard_live: bool = False
    expected_head: str | None = None


@route("GET", "/api/v1/repos/{id}/refs", access=Read(), flag=FLAG, returns=Page[Ref])
async def list_refs(view: View, query: RefQuery) -> Page[Ref]:
    """Branches and tags by name"""
    return await refs.page(view, query.type, query.cursor, query.limit)


@route("POST", "/api/v1/repos/{id}/refs", access=Write(), flag=FLAG, returns=Ref, status=201, errors=(409,))
async def create_ref(view: View, body: RefCreate, once: Once) -> Ref:
    """Create a branch or tag; its head is validated in the same transaction"""
    return await refs.create(view, body, once)


@route("GET", "/api/v1/repos/{id}/refs/{type}/{name...}", access=Read(), flag=FLAG, returns=Ref)
async def get_ref(view: View, type: str, name: str) -> Ref:
    """One branch or tag"""
    return await refs.get(view, type, name)


@route(
    "PATCH", "/api/v1/repos/{id}/refs/{type}/{name...}", access=Write(), flag=FLAG, returns=Ref, errors=(409,)
)
async def update_ref(view: View, type: str, name: str, body: RefUpdate) -> Ref:
    """Move a branch by compare-and-swap"""
    return await refs.update(view, type, name, body)


@route(
    "DELETE", "/api/v1/repos/{id}/refs/{type}/{name...}", access=Write(), flag=FLAG, status=204, errors=(409,)
)
async def delete_ref(view: View, type: str, name: str, query: DeleteQuery) -> Reply:
    """Delete a branch or tag; seals stay reachable by id"""
    await refs.delete(view, type, name, query.expected_head, query.discard_live)
    return Reply(status=204)
