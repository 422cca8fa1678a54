"""Merges: of a proposal, of a proposal's base into its branch, and of two branches.

A merge takes two requests, prepare and finalize. Preparing returns the bytes of every seal to sign, with its
changes against the tree of its first parent, so that the device can compute the merge itself before it
signs."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec

from localstore.core.endpoint import REPO, Endpoint
from localstore.core.errors import Conflict
from localstore.core.model.base import Model, Sent
from localstore.core.model.history import Seal
from localstore.core.model.limits import LARGE_ANSWER, REF_NAME_BYTES
from localstore.core.model.proposal import MergeStrategy, Proposal
from localstore.core.model.seal import SealChange, SealId


class BaseMoved(Conflict):
    """The base branch has moved; `base` is its new head. It is also the answer to a merge without a strategy
    if the base has seals that the head lacks, so that it cannot be fast-forwarded."""

    code = "base_moved"


class MergeConflict(Conflict):
    """Both sides changed `files` in ways that cannot be merged. Nothing was merged."""

    code = "merge_conflict"

    def __init__(self, files: list[str], way_out: str) -> None:
        names = ", ".join(files[:5]) + (f" and {len(files) - 5} more" if len(files) > 5 else "")
        super().__init__(f"both sides changed {names}; nothing was merged; {way_out}", files=files)


class NotMergeable(Conflict):
    """The proposal cannot be merged. `blocked_by`: codes of the reasons. If protection rules of the base are
    among them, `branch` is the base branch, and `patterns` are the patterns of those rules."""

    code = "not_mergeable"

    def __init__(self, sentence: str, blocked_by: list[str], **extra: Any) -> None:
        super().__init__(sentence, blocked_by=blocked_by, **extra)


RequestedStrategy = Literal["squash", "rebase", "merge"]
"""A strategy that a request names. A request without one asks for a fast-forward."""
Strategy = Literal[MergeStrategy, "update"]
"""How a merge is made. `update`: the base comes into the branch."""
Message = Annotated[str, msgspec.Meta(min_length=1)]


class MergePrepareRequest(Sent, frozen=True):
    """A request to prepare a merge. Without `strategy` the base is fast-forwarded to the head. `message`:
    message of the new seal, if one is made. `expected_head`, `expected_base`: the seals that the caller
    has seen. `auto`: the merge may wait until nothing blocks the proposal, so it is prepared even if the
    proposal is blocked now."""

    device_key_id: str
    strategy: RequestedStrategy | None = None
    message: Message | None = None
    expected_head: SealId | None = None
    expected_base: SealId | None = None
    auto: bool = False


class UpdatePrepareRequest(Sent, frozen=True):
    """A request to prepare merging the base of a proposal into its head branch. `expected_head`,
    `expected_base`: the seals that the caller has seen."""

    device_key_id: str
    message: Message | None = None
    expected_head: SealId | None = None
    expected_base: SealId | None = None


class MergeSeal(Model, frozen=True):
    """A seal to sign. `bytes` (b64u): what is signed; `digest`: the id of the seal. `changes`: how its tree
    differs from the tree of its first parent. `source`: for a merge by rebase, the seal whose changes this
    seal repeats; otherwise ""."""

    bytes: str
    digest: str
    content_digest: str
    message: str
    changes: list[SealChange]
    source: str


class PreparedMerge(Model, frozen=True):
    """A prepared merge. `merge_bases`: the nearest common ancestors of base and head; `merge_base`: the first
    of them. `merged`: paths that both sides changed and that were merged by lines. `tree_key` (b64u): key of
    the new seals' trees."""

    prepare_id: str
    strategy: Strategy
    base_seal: str
    head_seal: str
    merge_base: str | None
    seals: list[MergeSeal]
    merged: list[str]
    expires_at: str
    tree_key: str
    tree_key_id: str
    merge_bases: list[str] = msgspec.field(default_factory=list)


class MergeFinalizeRequest(Sent, frozen=True):
    """A request to carry out a prepared merge. `signatures`: one for each prepared seal, in their order.
    `delete_branch`: delete the head branch afterwards, unless it has unsealed edits or is the default
    branch."""

    prepare_id: str
    device_key_id: str
    signatures: list[str]
    delete_branch: bool = False


class UpdateFinalizeRequest(Sent, frozen=True):
    prepare_id: str
    device_key_id: str
    signatures: list[str]


RefName = Annotated[str, msgspec.Meta(min_length=1, max_length=REF_NAME_BYTES)]


class PreviewRequest(Sent, frozen=True):
    """A request for a trial merge. `base`: a branch; `head`: a branch, tag or seal."""

    base: RefName
    head: RefName
    message: Message | None = None


class Preview(Model, frozen=True):
    """The result of a trial merge. `files`: the paths that the merge would change. `bytes` (b64u): the seal
    with two parents that would be signed, None if there are `conflicts` (paths that both sides changed).
    `blocked_by`: codes of the reasons why the merge is refused now."""

    preview_id: str
    base_seal: str
    head_seal: str
    mergeable: bool
    conflicts: list[str]
    files: list[str]
    bytes: str | None
    expires_at: str
    blocked_by: list[str]


class MergeRequest(Sent, frozen=True):
    preview_id: str
    device_key_id: str
    signature: str


_ONE = f"{REPO}/proposals/{{n}}"
PREPARE = Endpoint(
    "POST",
    f"{_ONE}/merge-prepare",
    body=MergePrepareRequest,
    returns=PreparedMerge,
    repeatable=True,  # without lasting effect
    cap=LARGE_ANSWER,
)
FINALIZE = Endpoint("POST", f"{_ONE}/merge-finalize", body=MergeFinalizeRequest, returns=Proposal)
AUTO = Endpoint("PUT", f"{_ONE}/auto-merge", body=MergeFinalizeRequest, returns=Proposal)
AUTO_OFF = Endpoint("DELETE", f"{_ONE}/auto-merge", returns=Proposal)
UPDATE_PREPARE = Endpoint(
    "POST",
    f"{_ONE}/update-branch",
    body=UpdatePrepareRequest,
    returns=PreparedMerge,
    repeatable=True,
    cap=LARGE_ANSWER,
)
UPDATE_FINALIZE = Endpoint(
    "POST", f"{_ONE}/update-branch/finalize", body=UpdateFinalizeRequest, returns=Proposal
)
PREVIEW = Endpoint(
    "POST",
    f"{REPO}/merge-preview",
    body=PreviewRequest,
    returns=Preview,
    repeatable=True,
    cap=LARGE_ANSWER,
)
MERGE = Endpoint("POST", f"{REPO}/merge", body=MergeRequest, returns=Seal, status=201)
