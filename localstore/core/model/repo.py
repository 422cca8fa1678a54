"""Repositories."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

from localstore.core.endpoint import REPO, Endpoint
from localstore.core.errors import Conflict, Forbidden
from localstore.core.model.base import Description, Model, Page, PageQuery, RepoName, Sent
from localstore.core.model.limits import QUERY_CHARS


class NameTaken(Conflict):
    """Another repository of this owner has the name, or had it within the last 90 days."""

    code = "name_taken"


class RepositoryArchived(Conflict):
    """The repository is archived and cannot be changed; unarchive it first."""

    code = "repository_archived"


class FilteredView(Forbidden):
    """Some paths are visible to the repository's writers only, and this request cannot be answered without
    them."""

    code = "filtered_view"


class ClassImmutable(Conflict):
    """The class of a repository cannot change after its first seal."""

    code = "class_immutable"


class ForkIsPublic(Conflict):
    """A fork of a public repository stays public."""

    code = "fork_is_public"


class ForkPrivate(Conflict):
    """Only public repositories are forked: a fork is public."""

    code = "fork_private"


Kind = Literal["app", "lib", "model", "modelpack", "dataset"]
Class = Literal["private_plaintext", "published_public", "private_e2ee", "public_fork"]
Visibility = Literal["public", "private"]
State = Literal["active", "archived", "deleted", "suspended", "killed"]
Role = Literal["owner", "admin", "write", "triage", "read"]


class Viewer(Model, frozen=True):
    """The caller's relation to a repository. `role`: None for a reader of a public repository."""

    role: Role | None = None
    starred: bool = False
    watching: bool = False


class ParentRepo(Model, frozen=True):
    id: str
    full_name: str


class Repo(Model, rename={"class_": "class"}, frozen=True):
    """A repository. `full_name`: OWNER/NAME. `parent`: the repository that it was forked from, if the caller
    may see it. `clone_url`: address for git; None if the server has no git, or hides part of the
    repository."""

    id: str
    owner: str
    name: str
    full_name: str
    kind: Kind
    class_: Class
    default_branch: str
    description: str
    visibility: Visibility
    archived: bool
    state: State
    created_at: str
    updated_at: str
    stars: int = 0
    watchers: int = 0
    forks: int = 0
    parent: ParentRepo | None = None
    viewer: Viewer | None = None
    listing_id: str | None = None
    partial: bool = False
    clone_url: str | None = None


class RepoCreate(Sent, rename={"class_": "class"}, frozen=True):
    """A new repository. `visibility`: a short way to choose the class; if both are given, they must agree.
    `owner`: an organisation of which the caller is an admin; by default the caller."""

    name: RepoName
    owner: RepoName | None = None
    class_: Class | None = None
    visibility: Visibility | None = None
    default_branch: str = "main"
    kind: Kind = "app"
    description: Description = ""


class ForkCreate(Sent, frozen=True):
    """A new fork. `name`: by default the name of the repository. `owner`: an organisation of which the caller
    is an admin; by default the caller. `default_branch_only`: copy only the default branch, without other
    branches and tags."""

    name: RepoName | None = None
    owner: RepoName | None = None
    default_branch_only: bool = False


class RepoPatch(Sent, omit_defaults=True, frozen=True):
    """A change of a repository as JSON merge patch (RFC 7396); absent members change nothing."""

    name: RepoName | None = None
    description: Description | None = None
    default_branch: str | None = None
    visibility: Visibility | None = None
    archived: bool | None = None
    kind: Kind | None = None


class Coordinates(Model, rename={"class_": "class"}, frozen=True):
    """The name and basic facts of a public repository, which everybody may see. `parent`: the repository that
    it was forked from, if the caller may see that repository. `clone_url`: address for git; None if the
    server has no git, or hides part of the repository."""

    id: str
    owner: str
    name: str
    full_name: str
    kind: Kind
    class_: Class
    default_branch: str
    head: str | None
    description: str
    archived: bool
    page_url: str
    dev_url: str
    listing_id: str | None = None
    parent: ParentRepo | None = None
    clone_url: str | None = None


class Deleted(Model, frozen=True):
    """The answer to a deletion. `restore_id`: the id that restores the repository until `purge_at`."""

    restore_id: str
    purge_at: str


class RepoQuery(PageQuery, frozen=True):
    """Which repositories to list. `owner`: a handle or `@me`; `name` may be used only with it. `state`:
    `deleted` lists the deleted repositories that the caller can restore. `mine`: list the repositories in
    which the caller has a role, including owned ones; it cannot be combined with `owner`."""

    owner: str | None = None
    name: str | None = None
    state: Literal["deleted"] | None = None
    mine: bool = False


Order = Literal["trending", "recent"]


class SearchQuery(PageQuery, frozen=True):
    """A search for repositories. `q`: words that the name or description must contain. The result is ordered
    by trend, unless `sort` is recent."""

    q: Annotated[str, msgspec.Meta(max_length=QUERY_CHARS)] = ""
    sort: Order | None = None


LIST = Endpoint("GET", "/api/v1/repos", query=RepoQuery, returns=Page[Repo])
CREATE = Endpoint("POST", "/api/v1/repos", body=RepoCreate, returns=Repo, status=201)
GET = Endpoint("GET", REPO, returns=Repo)
UPDATE = Endpoint("PATCH", REPO, body=RepoPatch, returns=Repo)
DELETE = Endpoint("DELETE", REPO, returns=Deleted)
RESTORE = Endpoint("POST", f"{REPO}/restore", returns=Repo)
FORK = Endpoint("POST", f"{REPO}/forks", body=ForkCreate, returns=Repo, status=201)
FORKS = Endpoint("GET", f"{REPO}/forks", query=PageQuery, returns=Page[Repo])
SEARCH = Endpoint("GET", "/api/v1/search/repos", query=SearchQuery, returns=Page[Repo])
COORDINATES = Endpoint("GET", "/api/v1/public/{kind}/{owner}/{name}", returns=Coordinates)
