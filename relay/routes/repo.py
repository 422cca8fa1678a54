"""Repositories: made, found, changed, deleted and brought back."""

from __future__ import annotations

from typing import Literal

from localstore.core.model.base import Model, Page
from localstore.core.model.repo import Deleted, Repo, RepoCreate, RepoPatch
from relay.caller import Caller, View
from relay.http.routing import Reply, route
from relay.service import repo as repos
from relay.service.once import Once

FLAG = "TR_REPOS_ENABLED"


class RepoQuery(Model, frozen=True):
    """`owner` is a handle or `@me`; `name` needs it. `state` deleted: what the caller can still restore."""

    owner: str | None = None
    name: str | None = None
    state: Literal["deleted"] | None = None
    cursor: str | None = None
    limit: int | None = None


@route(
    "POST",
    "/api/v1/repos",
    operation="repo.create",
    flag=FLAG,
    returns=Repo,
    status=201,
    errors=(409, 503),
    cost=5,
)
async def create_repo(caller: Caller, body: RepoCreate, once: Once) -> Reply:
    """Create a repository with its default branch"""
    made = await repos.create(caller, body, once)
    return Reply(body=made, status=201, headers={"location": f"/api/v1/repos/{made.id}"})


@route("GET", "/api/v1/repos", operation="repo.list", flag=FLAG, returns=Page[Repo])
async def list_repos(caller: Caller, query: RepoQuery) -> Page[Repo]:
    """Repositories the caller may see"""
    return await repos.page(
        caller,
        owner=query.owner,
        name=query.name,
        state=query.state,
        cursor=query.cursor,
        limit=query.limit,
    )


@route("GET", "/api/v1/repos/{id}", operation="repo.get", flag=FLAG, returns=Repo)
async def get_repo(view: View) -> Repo:
    """One repository"""
    return await repos.get(view)


@route(
    "PATCH",
    "/api/v1/repos/{id}",
    operation="repo.update",
    flag=FLAG,
    returns=Repo,
    errors=(409,),
)
async def update_repo(view: View, body: RepoPatch) -> Repo:
    """Change settings; the owner's alone"""
    return await repos.edit(view, body)


@route("DELETE", "/api/v1/repos/{id}", operation="repo.delete", flag=FLAG, returns=Deleted)
async def delete_repo(view: View) -> Deleted:
    """Delete softly: restorable for 30 days"""
    return await repos.delete(view)


@route("POST", "/api/v1/repos/{id}/restore", operation="repo.restore", flag=FLAG, returns=Repo)
async def restore_repo(caller: Caller, id: str) -> Repo:
    """Bring a deleted repository back"""
    return await repos.restore(caller, id)
