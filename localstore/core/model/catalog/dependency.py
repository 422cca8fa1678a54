"""Dependencies of a repository, read from its manifests at a seal, and what depends on it."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

from localstore.core.endpoint import REPO, Endpoint
from localstore.core.limits import REF_NAME_BYTES
from localstore.core.model.base import Model, Page, PageQuery
from localstore.core.model.repo import ParentRepo

Ecosystem = Literal["svc", "PyPI", "npm", "crates.io", "Go"]
"""As OSV names them; `svc` are repositories of a node."""


class Matched(Model, frozen=True):
    """An advisory about a dependency. `certain` False: the manifest leaves open which version it is, or the
    version cannot be compared."""

    id: str
    summary: str
    certain: bool


class Dependency(Model, frozen=True):
    """`path`: the manifest that declares it. `requirement`: what it asks of the version, in the words of the
    ecosystem. `version`: the only one that it can be. `repo`: the repository of this node, where the caller
    sees it."""

    ecosystem: Ecosystem
    name: str
    requirement: str
    version: str | None
    development: bool
    path: str
    repo: ParentRepo | None = None
    advisories: list[Matched] = msgspec.field(default_factory=list)


class Manifest(Model, frozen=True):
    """A manifest that was found. `problem`: why nothing was read from it."""

    path: str
    problem: str | None = None


class Dependencies(Model, frozen=True):
    """What a seal depends on, in the order of the manifests. `complete` False: the tree has more manifests,
    folders or dependencies than are read."""

    seal_id: str | None
    manifests: list[Manifest]
    items: list[Dependency]
    complete: bool


class DependencyQuery(Model, frozen=True):
    """`ref`: a branch, a tag, `pr:N` or a seal; else the default branch."""

    ref: Annotated[str, msgspec.Meta(max_length=REF_NAME_BYTES)] | None = None


class Dependent(Model, frozen=True):
    """A repository whose default branch depends on this one."""

    id: str
    full_name: str
    description: str


LIST = Endpoint("GET", f"{REPO}/dependencies", query=DependencyQuery, returns=Dependencies)
DEPENDENTS = Endpoint("GET", f"{REPO}/dependents", query=PageQuery, returns=Page[Dependent])
