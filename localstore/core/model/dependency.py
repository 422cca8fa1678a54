"""The dependencies of a repository, read from its manifests at a seal, and the repositories that depend on
it."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

from localstore.core.endpoint import REPO, Endpoint
from localstore.core.model.base import Model, Page, PageQuery
from localstore.core.model.limits import REF_NAME_BYTES
from localstore.core.model.repo import ParentRepo

Ecosystem = Literal["svc", "PyPI", "npm", "crates.io", "Go"]
"""As OSV names them; `svc` are repositories of a node."""


class Matched(Model, frozen=True):
    """An advisory that affects a dependency, or may affect it. `certain`: False if the manifest allows
    several versions, or if the version cannot be compared."""

    id: str
    summary: str
    certain: bool


class Dependency(Model, frozen=True):
    """A dependency of a repository. `path`: the manifest that declares it. `requirement`: the versions that
    the manifest accepts, in the syntax of the ecosystem. `version`: the only version that it accepts, None if
    there are several. `repo`: the repository on this relay that contains the dependency, if the caller may
    see it."""

    ecosystem: Ecosystem
    name: str
    requirement: str
    version: str | None
    development: bool
    path: str
    repo: ParentRepo | None = None
    advisories: list[Matched] = msgspec.field(default_factory=list)


class Manifest(Model, frozen=True):
    """A file of the tree that declares dependencies. `problem`: the reason why it could not be read, None if
    it could."""

    path: str
    problem: str | None = None


class Dependencies(Model, frozen=True):
    """The dependencies of a seal, in the order of the manifests. `complete`: False if a limit was reached, so
    that some manifests, folders or dependencies are missing."""

    seal_id: str | None
    manifests: list[Manifest]
    items: list[Dependency]
    complete: bool


class DependencyQuery(Model, frozen=True):
    """Which dependencies to list. `ref`: a branch, a tag, a proposal (`pr:N`) or a seal; by default the
    default branch."""

    ref: Annotated[str, msgspec.Meta(max_length=REF_NAME_BYTES)] | None = None


class Dependent(Model, frozen=True):
    """A repository whose default branch depends on the repository of the request."""

    id: str
    full_name: str
    description: str


LIST = Endpoint("GET", f"{REPO}/dependencies", query=DependencyQuery, returns=Dependencies)
DEPENDENTS = Endpoint("GET", f"{REPO}/dependents", query=PageQuery, returns=Page[Dependent])
