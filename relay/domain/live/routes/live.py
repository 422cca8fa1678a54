"""The live frontier of a branch."""

from __future__ import annotations

from localstore.core.limits import KIB, UPDATE_BATCH_BYTES
from localstore.core.model import live as endpoints
from localstore.core.model.live import (
    Bootstrap,
    BootstrapRequest,
    LanesRequest,
    LaneStates,
    ProofContext,
    ProofContextRequest,
    UpdateAnswers,
    UpdatesRequest,
)
from relay.caller import View
from relay.domain.live import lane, live
from relay.http.routing import serves

FLAG = "TR_REPO_LIVE_TEXT"
ENVELOPE = 4 * KIB  # of a batch beside its updates


@serves(endpoints.BOOTSTRAP, operation="live.bootstrap", flag=FLAG, errors=(409,))
async def bootstrap(view: View, branch: str, body: BootstrapRequest) -> Bootstrap:
    """Rows of the live frontier, all or since a number, and the working copy's replica id"""
    return await live.bootstrap(view, branch, body)


@serves(endpoints.LANES, operation="live.lanes", flag=FLAG)
async def lanes(view: View, branch: str, body: LanesRequest) -> LaneStates:
    """Full states of lanes, and the last states of older epochs"""
    return await lane.read(view, branch, body)


@serves(endpoints.PROOF_CONTEXT, operation="live.proof_context", flag=FLAG)
async def proof_context(view: View, branch: str, body: ProofContextRequest) -> ProofContext:
    """The exact bytes that a device signs for an update"""
    return await live.proof_context(view, branch, body)


@serves(
    endpoints.UPDATES,
    operation="live.updates",
    flag=FLAG,
    max_body=UPDATE_BATCH_BYTES + ENVELOPE,
    errors=(409, 507),
)
async def updates(view: View, branch: str, body: UpdatesRequest) -> UpdateAnswers:
    """Signed updates, or one, each with its answer; an acknowledged update is durable"""
    return await live.accept(view, branch, body.batch())
