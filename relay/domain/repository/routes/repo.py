"""Repositories: create, find, change, delete and restore."""

from __future__ import annotations

from localstore.core.model import repo as endpoints
from localstore.core.model.base import Page, PageQuery
from localstore.core.model.repo import Deleted, ForkCreate, Repo, RepoCreate, RepoPatch, RepoQuery
from relay.caller import Caller, View
from relay.domain.repository import fork as forks
from relay.domain.repository import repo as repos
from relay.http.routing import Reply, serves

FLAG = "TR_REPOS_ENABLED"
FORKS = "TR_FORK_ENABLED"


@serves(endpoints.CREATE, operation="repo.create", flag=FLAG, errors=(409, 503), cost=5)
async def create_repo(caller: Caller, body: RepoCreate) -> Reply:
    """Create a repository with its default branch"""
    made = await repos.create(caller, body)
    return Reply(body=made, status=201, headers={"location": f"/api/v1/repos/{made.id}"})


@serves(endpoints.LIST, operation="repo.list", flag=FLAG)
async def list_repos(caller: Caller, query: RepoQuery) -> Page[Repo]:
    """Repositories the caller may see"""
    return await repos.page(caller, query)


@serves(endpoints.GET, operation="repo.get", flag=FLAG)
async def get_repo(view: View) -> Repo:
    """One repository"""
    return await repos.get(view)


@serves(endpoints.UPDATE, operation="repo.update", flag=FLAG, errors=(409,))
async def update_repo(view: View, body: RepoPatch) -> Repo:
    """Change settings; only the owner may"""
    return await repos.edit(view, body)


@serves(endpoints.DELETE, operation="repo.delete", flag=FLAG)
async def delete_repo(view: View) -> Deleted:
    """Delete a repository; it can be restored for 30 days"""
    return await repos.delete(view)


@serves(endpoints.RESTORE, operation="repo.restore", flag=FLAG)
async def restore_repo(caller: Caller, id: str) -> Repo:
    """Restore a deleted repository"""
    return await repos.restore(caller, id)


@serves(endpoints.FORK, operation="fork.create", flag=FORKS, errors=(409, 503), cost=5)
async def create_fork(view: View, body: ForkCreate) -> Reply:
    """Fork a public repository: its history under the caller's name"""
    made = await forks.create(view, body)
    return Reply(body=made, status=201, headers={"location": f"/api/v1/repos/{made.id}"})


@serves(endpoints.FORKS, operation="fork.list", flag=FORKS)
async def list_forks(view: View, query: PageQuery) -> Page[Repo]:
    """Forks of a repository that the caller may see"""
    return await forks.page(view, query)
