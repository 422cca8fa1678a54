"""Reviews of proposals, each about one version."""

from __future__ import annotations

from typing import Literal

from localstore.core.endpoint import REPO, Endpoint
from localstore.core.errors import Conflict, Forbidden
from localstore.core.model.base import Actor, Model, Page, PageQuery, Sent
from localstore.core.model.issue import Body


class OwnProposal(Forbidden):
    """Authors can neither approve their own proposal nor request changes to it."""

    code = "own_proposal"


class HeadMoved(Conflict):
    """The head has moved; `head`: its current seal."""

    code = "head_moved"

    def __init__(self, number: int, head: str) -> None:
        super().__init__(f"the head of #{number} moved to {head[:12]}; look at it again", head=head)


Verdict = Literal["approve", "request_changes", "comment"]


class Review(Model, frozen=True):
    """A review of a proposal. `seal_id`: the head that was reviewed; `version`: the version number of that
    head. `stale`: the proposal's changes are no longer the ones that were reviewed. `counts`: whether the
    verdict counts, because the reviewer has write access now."""

    id: str
    reviewer: Actor
    verdict: Verdict
    body: str
    seal_id: str
    version: int
    created_at: str
    stale: bool = False
    counts: bool = True
    dismissed_at: str | None = None


class ReviewCreate(Sent, frozen=True):
    """A new review. `seal_id`: the reviewed head; refused if it is no longer the head."""

    verdict: Verdict
    body: Body = ""
    seal_id: str | None = None


class ReviewPatch(Sent, frozen=True):
    """A change of a review: the only possible change is to dismiss it."""

    state: Literal["dismissed"]


_ALL = f"{REPO}/proposals/{{n}}/reviews"
LIST = Endpoint("GET", _ALL, query=PageQuery, returns=Page[Review])
CREATE = Endpoint("POST", _ALL, body=ReviewCreate, returns=Review, status=201)
DISMISS = Endpoint("PATCH", f"{_ALL}/{{review}}", body=ReviewPatch, returns=Review)
