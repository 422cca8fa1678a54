"""Branches and tags."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

from localstore.core.endpoint import REPO, Endpoint
from localstore.core.errors import Conflict, NotFound
from localstore.core.model.base import Model, Page, PageQuery, Sent
from localstore.core.model.limits import REF_NAME_BYTES


class NoBranch(NotFound):
    """The repository has no branch of this name. `default`: its default branch."""

    code = "no_branch"

    def __init__(self, branch: str, default: str = "main") -> None:
        super().__init__(f"there is no branch {branch}; see: svc repo branch", branch=branch, default=default)


class StaleHead(Conflict):
    """The branch is not at the head that the request expected. `head`: its current head, null if it has no
    seal yet."""

    code = "stale_head"

    def __init__(self, ref: str, head: str | None, remedy: str = "run: svc pull") -> None:
        super().__init__(f"{ref} moved to {(head or 'nothing')[:12]}; {remedy}", ref=ref, head=head)


class RefExists(Conflict):
    """A branch or tag with this name already exists."""

    code = "ref_exists"


class TagExists(RefExists):
    """A tag with this name exists; tags cannot be moved."""

    code = "tag_exists"


RefType = Literal["branch", "tag"]


class Ref(Model, frozen=True):
    """A branch or tag. `head`: a seal id, None for a branch without seals. `id`: a permanent id, which a
    rename does not change. `frontier`: the number of live updates."""

    id: str
    type: RefType
    name: str
    head: str | None
    default: bool = False
    protected: bool = False
    frontier: int = 0


class RefCreate(Sent, frozen=True):
    """A new branch or tag. `head`: where it begins, as a seal id or the name of another branch.
    `expected_head`: the head that this other branch must have."""

    type: RefType
    name: Annotated[str, msgspec.Meta(min_length=1, max_length=REF_NAME_BYTES)]
    head: str | None = None
    expected_head: str | None = None


class RefUpdate(Sent, frozen=True):
    """A request to move a branch to the seal `head`, if its head still is `expected_head` (compare and
    swap)."""

    head: str
    expected_head: str | None


class RefQuery(PageQuery, frozen=True):
    """A filter of branches and tags. `type`: which of the two to list; by default branches, then tags."""

    type: RefType | None = None


class RefDelete(Model, frozen=True):
    """A request to delete a branch or tag. `discard_live`: delete it even if it has unsealed edits, which are
    lost. `expected_head`: the head that the branch or tag must have."""

    discard_live: bool = False
    expected_head: str | None = None


_ONE = f"{REPO}/refs/{{type}}/{{name...}}"
LIST = Endpoint("GET", f"{REPO}/refs", query=RefQuery, returns=Page[Ref])
CREATE = Endpoint("POST", f"{REPO}/refs", body=RefCreate, returns=Ref, status=201)
GET = Endpoint("GET", _ONE, returns=Ref)
UPDATE = Endpoint("PATCH", _ONE, body=RefUpdate, returns=Ref)
DELETE: Endpoint[None] = Endpoint("DELETE", _ONE, query=RefDelete, status=204)
