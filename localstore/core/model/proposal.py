"""Proposals to merge one branch into another. They share numbers, comments and reactions with issues."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec

from localstore.core.endpoint import REPO, Endpoint
from localstore.core.errors import Conflict
from localstore.core.model.base import Actor, Count, Model, Page, PageQuery, Sent
from localstore.core.model.check import Rollup
from localstore.core.model.issue import (
    Body,
    Handle,
    Handles,
    LabelAddQuery,
    Names,
    Reactions,
    Title,
)
from localstore.core.model.label import Label, Name
from localstore.core.model.limits import QUERY_CHARS, REF_NAME_BYTES, REVIEWERS
from localstore.core.model.review import Review


class ProposalExists(Conflict):
    """There is an open proposal with this head and base; `number`: its number."""

    code = "proposal_exists"


class NothingProposed(Conflict):
    """The base has every seal of the head already."""

    code = "nothing_proposed"


class ProposalMerged(Conflict):
    """The proposal is merged, and that is final."""

    code = "proposal_merged"


class ProposalBranchGone(Conflict):
    """The head or base branch of the proposal is deleted."""

    code = "proposal_branch_gone"


class Draft(Conflict):
    """The proposal is a draft: it cannot be approved or merged until it is ready."""

    code = "draft"


State = Literal["open", "closed", "merged"]
MergeState = Literal["clean", "conflicts", "behind", "blocked", "draft", "unknown"]
REPO_ADDRESS = 200  # characters of OWNER/NAME: in front of a branch
Branch = Annotated[str, msgspec.Meta(min_length=1, max_length=REF_NAME_BYTES, description="name of a branch")]
Head = Annotated[
    str,
    msgspec.Meta(
        min_length=1,
        max_length=REF_NAME_BYTES + REPO_ADDRESS,
        description="name of a branch, or OWNER:BRANCH of a fork",
    ),
]
Reviewers = Annotated[list[Handle], msgspec.Meta(max_length=REVIEWERS)]


class HeadRepo(Model, frozen=True):
    """The repository of a proposal's head branch. It is the proposal's own repository, or another one that
    shares its history."""

    id: str
    full_name: str


class ThreadCounts(Model, frozen=True):
    """How many threads of a proposal are `open` and how many are `resolved`."""

    open: int = 0
    resolved: int = 0


class Reviewer(Model, frozen=True):
    """An account that was asked for a review, or whose verdict counts. `seal_id`: the head that the verdict
    is about. `stale`: the proposal's changes are no longer the ones that were reviewed."""

    who: Actor
    state: Literal["requested", "approved", "changes_requested"]
    seal_id: str | None = None
    stale: bool = False


MergeStrategy = Literal["fast_forward", "squash", "rebase", "merge"]
"""How a proposal is merged into its base."""


class AutoMerge(Model, frozen=True):
    """A merge that `by` has signed in advance. It is carried out as soon as nothing blocks the proposal,
    unless the head or the base branch moves before that."""

    by: Actor
    strategy: MergeStrategy
    created_at: str


class Needs(Model, frozen=True):
    """What the protection rules of the base branch ask of a merge. `approvals`: how many approvals.
    `missing`: how many of them the proposal lacks now. `checks`: whether the required checks have to pass."""

    approvals: Count = 0
    missing: Count = 0
    checks: bool = False


class Proposal(Model, frozen=True):
    """A proposal to merge a branch into another.

    - `head_seal`: the head of the newest version, whose number is `version`.
    - `base_seal`: head of the base branch; for a closed proposal, the base of the newest version.
    - `merge_base`: None while unknown.
    - `reviews`: the reviews from which the verdicts of `reviewers` come.
    - `checks`: the checks on `head_seal`.
    - `merge_state`: `clean` (it can be fast-forwarded), `behind` (the base has moved on; a merge has no
      conflict), `conflicts` (reported even if something else blocks the proposal too), `blocked` (for the
      reasons in `blocked_by`), `draft`, or `unknown` (no merge has been tried yet).
    - `blocked_by`: the reasons why it cannot be merged, as codes.
    - `needs`: what the rules of the base branch ask of a merge, if the proposal is open.
    - `conflicts`: files in which a merge conflicts, the first 100 that the caller sees.
    - `mergeable`: whether a merge would have no conflict; None while unknown.
    - `depends_on`: open proposals whose head branch is the base branch of this proposal.
    - `closes`: issues that merging closes.
    - `head_repo`: repository of the head branch, None if it was deleted or is hidden.
    - `cross_repository`: whether `head_repo` is another repository."""

    number: int
    title: str
    body: str
    state: State
    draft: bool
    author: Actor
    head: str
    base: str
    head_repo: HeadRepo | None
    head_seal: str
    base_seal: str
    merge_base: str | None
    version: int
    assignees: list[Actor]
    labels: list[Label]
    reactions: Reactions
    comments: int
    reviewers: list[Reviewer]
    reviews: list[Review]
    checks: Rollup
    threads: ThreadCounts
    merge_state: MergeState
    blocked_by: list[str]
    depends_on: list[int]
    closes: list[int]
    created_at: str
    updated_at: str
    closed_at: str | None = None
    merged_seal: str | None = None
    auto_merge: AutoMerge | None = None
    cross_repository: bool = False
    conflicts: list[str] = msgspec.field(default_factory=list)
    mergeable: bool | None = None
    needs: Needs = Needs()


class Version(Model, frozen=True):
    """One head that a proposal had. `base`: head of the base branch at that time. `change_id`: the same for
    equal changes, wherever they are in their files. It is None while unknown, and if paths are hidden."""

    n: int
    head: str
    base: str
    merge_base: str | None
    change_id: str | None
    by: Actor | None
    at: str


class ProposalCreate(Sent, frozen=True):
    """A new proposal. `head`: a branch of the repository, or a branch of a fork that the author may write to:
    OWNER:BRANCH, or OWNER/NAME:BRANCH if OWNER has several forks. Labels, assignees and reviewers need the
    rights to set them. An author may always ask for reviews."""

    head: Head
    base: Branch
    title: Title
    body: Body = ""
    draft: bool = False
    labels: Names = msgspec.field(default_factory=list)
    assignees: Handles = msgspec.field(default_factory=list)
    reviewers: Reviewers = msgspec.field(default_factory=list)


class ProposalPatch(Sent, frozen=True):
    """A change of a proposal. Members that are None or an empty list change nothing."""

    title: Title | None = None
    body: Body | None = None
    base: Branch | None = None
    state: Literal["open", "closed"] | None = None
    draft: bool | None = None
    add_labels: Names = msgspec.field(default_factory=list)
    remove_labels: Names = msgspec.field(default_factory=list)
    add_assignees: Handles = msgspec.field(default_factory=list)
    remove_assignees: Handles = msgspec.field(default_factory=list)
    add_reviewers: Reviewers = msgspec.field(default_factory=list)
    remove_reviewers: Reviewers = msgspec.field(default_factory=list)


class ProposalQuery(PageQuery, frozen=True):
    """A filter of proposals. `author`, `assignee`, `reviewer`: a handle, or @me. `involves`: @me for
    proposals that the caller opened, commented on or is assigned to. `head`, `base`: names of branches.
    `search`: words of the title or the text, in any case. All of them must occur; only the first 8 count."""

    state: Literal["open", "closed", "merged", "all"] = "open"
    author: Handle | None = None
    assignee: Handle | None = None
    reviewer: Handle | None = None
    involves: Literal["@me"] | None = None
    label: Name | None = None
    head: Branch | None = None
    base: Branch | None = None
    draft: bool | None = None
    search: (
        Annotated[str, msgspec.Meta(min_length=1, max_length=QUERY_CHARS, pattern=r"^[^\x00]*$")] | None
    ) = None


class TimelineItem(Model, frozen=True):
    """One event of an issue or a proposal. `kind`: noun.verb. `data`: ids, numbers and names. `person`: the
    account that was assigned or asked for a review, or no longer is; None for other events."""

    id: int
    kind: str
    actor: Actor | None
    at: str
    data: dict[str, Any]
    person: Actor | None = None


_ONE = f"{REPO}/proposals/{{n}}"
LIST = Endpoint("GET", f"{REPO}/proposals", query=ProposalQuery, returns=Page[Proposal])
CREATE = Endpoint("POST", f"{REPO}/proposals", body=ProposalCreate, returns=Proposal, status=201)
GET = Endpoint("GET", _ONE, returns=Proposal)
UPDATE = Endpoint("PATCH", _ONE, body=ProposalPatch, returns=Proposal)
ADD_LABEL = Endpoint("PUT", f"{_ONE}/labels/{{name}}", query=LabelAddQuery, returns=Proposal)
REMOVE_LABEL = Endpoint("DELETE", f"{_ONE}/labels/{{name}}", returns=Proposal)
VERSIONS = Endpoint("GET", f"{_ONE}/versions", query=PageQuery, returns=Page[Version])
TIMELINE = Endpoint("GET", f"{REPO}/issues/{{n}}/timeline", query=PageQuery, returns=Page[TimelineItem])
