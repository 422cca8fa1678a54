"""Sealing in two requests: prepare returns the exact bytes of the seal, finalize sends their signature."""

from __future__ import annotations

from typing import Annotated

import msgspec

from localstore.core.endpoint import REPO, Endpoint
from localstore.core.errors import Gone, Invalid, TooLarge, Unavailable
from localstore.core.model.base import Count, Model, Page, Sent
from localstore.core.model.history import Seal
from localstore.core.model.limits import LARGE_ANSWER, SEALS_PER_REQUEST
from localstore.core.seal import SOURCES_MAX

SealId = Annotated[str, msgspec.Meta(pattern=r"^[0-9a-f]{64}(?!\n)$", description="64 digits 0-9, a-f")]


class PrepareExpired(Gone):
    """The prepared seal has expired; nothing was sealed. Prepare it again."""

    code = "prepare_expired"


class SealBudgetExceeded(TooLarge):
    """The tree to be sealed is larger than its repository's class allows."""

    code = "seal_budget_exceeded"


class PayloadMissing(Invalid):
    """An update or a tree refers to bytes that the repository lacks; `missing`: their digests."""

    code = "payload_missing"


class E2eeUnavailable(Unavailable):
    """End-to-end encryption is not available on this server."""

    code = "e2ee_unavailable"


class SealChange(Model, array_like=True, frozen=True):
    """The change of one path of a tree, encoded as an array. `kind`: None if the path is removed; `digest`:
    hex; `size`: bytes."""

    path: str
    kind: str | None
    digest: str = ""
    size: Count = 0


class PrepareRequest(Sent, frozen=True):
    """A request to prepare a seal of the live frontier. `expected_head`: the newest seal that this device
    has. `expected_frontier`: refuse the request if the frontier is beyond this number. `replica`: the id of
    this working copy. `settled`: the working copy has received the answers to all its updates up to this
    number, so the relay may forget these answers. `merged`: seals that were merged into the frontier, which
    are recorded in the provenance. If there are any, a seal is made even if the tree equals the parent's
    tree."""

    message: str
    device_key_id: str
    expected_head: str | None
    expected_frontier: Count | None = None
    author: str | None = None
    replica: Count | None = None
    settled: Count = 0
    merged: Annotated[list[SealId], msgspec.Meta(max_length=SOURCES_MAX)] = msgspec.field(
        default_factory=list
    )


class Prepared(Model, frozen=True):
    """A prepared seal. `bytes` (b64u): the exact payload to sign; `digest`: its BLAKE3, the seal id.
    `changes`: how its tree differs from the parent's tree; the device computes `content_digest` from them.
    `live_by`: for each path, the others who have unsealed edits in this seal. `unchanged`: the tree equals
    the parent's tree, so there is nothing to seal and no `prepare_id`."""

    prepare_id: str
    bytes: str
    digest: str
    content_digest: str
    at: Count
    expires_at: str
    changes: list[SealChange]
    live_by: dict[str, list[str]] = msgspec.field(default_factory=dict)
    unchanged: bool = False


class FinalizeRequest(Sent, frozen=True):
    prepare_id: str
    device_key_id: str
    signature: str


class TreeDelta(Sent, frozen=True):
    """One seal to make from an explicit tree. `changes`: how the tree differs from the previous seal's
    tree."""

    message: str
    changes: list[SealChange]
    parents: list[str] = msgspec.field(default_factory=list)
    author: str | None = None
    git_id: str | None = None
    git_raw: str | None = None


class PrepareSealsRequest(Sent, frozen=True):
    """A request to prepare several seals of `branch` from explicit trees. Each seal is the parent of the next
    one; the first parent of the first seal is `expected_head`."""

    branch: str
    device_key_id: str
    expected_head: str | None
    seals: Annotated[list[TreeDelta], msgspec.Meta(min_length=1, max_length=SEALS_PER_REQUEST)]


class PreparedSeal(Model, frozen=True):
    bytes: str
    digest: str
    content_digest: str


class PreparedSeals(Model, frozen=True):
    """The prepared seals, in the order of the request. `tree_key` (b64u): the tree key of the new seals."""

    prepare_id: str
    seals: list[PreparedSeal]
    expires_at: str
    tree_key: str
    tree_key_id: str


class FinalizeSealsRequest(Sent, frozen=True):
    prepare_id: str
    device_key_id: str
    signatures: list[str]


_BRANCH = f"{REPO}/branches/{{branch}}/seal"
PREPARE = Endpoint(
    "POST",
    f"{_BRANCH}/prepare",
    body=PrepareRequest,
    returns=Prepared,
    repeatable=True,  # neither takes effect
    cap=LARGE_ANSWER,  # a first seal names every path of its tree
)
FINALIZE = Endpoint("POST", f"{_BRANCH}/finalize", body=FinalizeRequest, returns=Seal, status=201)
PREPARE_SEALS = Endpoint(
    "POST",
    f"{REPO}/seals/prepare",
    body=PrepareSealsRequest,
    returns=PreparedSeals,
    repeatable=True,
    cap=LARGE_ANSWER,
)
FINALIZE_SEALS = Endpoint(
    "POST", f"{REPO}/seals/finalize", body=FinalizeSealsRequest, returns=Page[Seal], status=201
)
