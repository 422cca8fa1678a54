"""Routes of repositories and their forks, refs, addresses, path rules and audit, and of the search for
repositories.
"""

from __future__ import annotations

from localstore.core.model import audit, path, ref, repo
from localstore.core.model.base import Page
from localstore.core.model.path import PathRuleRemove
from localstore.core.model.ref import Ref, RefDelete, RefQuery
from localstore.core.model.repo import (
    Coordinates,
    ForkCreate,
    Repo,
    RepoCreate,
    SearchQuery,
)
from relay.caller import Caller, View
from relay.domain.repository import audit as audits
from relay.domain.repository import fork as forks
from relay.domain.repository import path as paths
from relay.domain.repository import public, search
from relay.domain.repository import ref as refs
from relay.domain.repository import repo as repos
from relay.http.routing import REPOSITORIES, Reply, serves

serves(audit.LIST, operation="audit.list", name="audit.list_audit")(audits.page)
serves(path.LIST, operation="path.list", name="path.list_paths")(paths.page)
serves(path.SET, operation="path.set", name="path.set_path", errors=(409, 501))(paths.put)


@serves(path.REMOVE, operation="path.remove", name="path.remove_path", errors=(409,))
async def remove_path(view: View, query: PathRuleRemove) -> None:
    """Remove the rule for a path"""
    await paths.remove(view, query.path)


serves(path.TIMELINE, operation="path.timeline", name="path.path_timeline")(paths.timeline)


@serves(
    repo.COORDINATES,
    operation="repo.coordinates",
    name="public.coordinates",
    flag=REPOSITORIES,
    others=(307,),
)
async def coordinates(caller: Caller, kind: str, owner: str, name: str) -> Coordinates | Reply:
    """Public coordinates of a repository; an address with a wrong kind is redirected"""
    named, right = await public.coordinates(caller, kind, owner, name)
    if right is not None:
        return Reply(status=307, headers={"location": f"/api/v1/public/{right}/{named.full_name}"})
    return named


@serves(ref.LIST, operation="ref.list", name="ref.list_refs")
async def list_refs(view: View, query: RefQuery) -> Page[Ref]:
    """Branches and tags, sorted by name"""
    return await refs.page(view, query.type, query.cursor, query.limit)


serves(ref.CREATE, operation="ref.create", name="ref.create_ref", errors=(409,))(refs.create)
serves(ref.GET, operation="ref.get", name="ref.get_ref")(refs.get)
serves(ref.UPDATE, operation="ref.update", name="ref.update_ref", errors=(409,))(refs.update)


@serves(ref.DELETE, operation="ref.delete", name="ref.delete_ref", errors=(409,))
async def delete_ref(view: View, type: str, name: str, query: RefDelete) -> None:
    """Delete a branch or tag; seals stay reachable by id"""
    await refs.delete(view, type, name, query.expected_head, query.discard_live)


@serves(
    repo.CREATE,
    operation="repo.create",
    name="repo.create_repo",
    flag=REPOSITORIES,
    errors=(409, 503),
    cost=5,
)
async def create_repo(caller: Caller, body: RepoCreate) -> Reply:
    """Create a repository with its default branch"""
    repo = await repos.create(caller, body)
    return Reply(body=repo, status=201, headers={"location": f"/api/v1/repos/{repo.id}"})


serves(repo.LIST, operation="repo.list", name="repo.list_repos", flag=REPOSITORIES)(repos.page)
serves(repo.GET, operation="repo.get", name="repo.get_repo")(repos.get)
serves(repo.UPDATE, operation="repo.update", name="repo.update_repo", errors=(409,))(repos.edit)
serves(repo.DELETE, operation="repo.delete", name="repo.delete_repo")(repos.delete)
serves(repo.RESTORE, operation="repo.restore", name="repo.restore_repo", flag=REPOSITORIES)(repos.restore)


@serves(
    repo.FORK,
    operation="fork.create",
    name="repo.create_fork",
    flag="TR_FORK_ENABLED",
    errors=(409, 503),
    cost=5,
)
async def create_fork(view: View, body: ForkCreate) -> Reply:
    """Fork a public repository: its history under the caller's name"""
    fork = await forks.create(view, body)
    return Reply(body=fork, status=201, headers={"location": f"/api/v1/repos/{fork.id}"})


serves(repo.FORKS, operation="fork.list", name="repo.list_forks", flag="TR_FORK_ENABLED")(forks.page)


@serves(repo.SEARCH, operation="repo.search", name="search.search_repos", flag=REPOSITORIES, cost=5)
async def search_repos(caller: Caller, query: SearchQuery) -> Page[Repo]:
    """Search for repositories by name and description; trending ones come first"""
    return await search.repos(caller, query.q, query.sort, query.cursor, query.limit)
