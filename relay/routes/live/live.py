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
from relay.http.routing import serves
from relay.service.live import lane, live

FLAG = "TR_REPO_LIVE_TEXT"
ENVELOPE = 4 * KIB  # what a batch holds beside its updates


@serves(endpoints.BOOTSTRAP, operation="live.bootstrap", flag=FLAG, errors=(409,))
async def bootstrap(view: View, branch: str, body: BootstrapRequest) -> Bootstrap:
    """The frontier's rows, whole or since a number, and the folder's replica id"""
    return await live.bootstrap(view, branch, body)


@serves(endpoints.LANES, operation="live.lanes", flag=FLAG)
async def lanes(view: View, branch: str, body: LanesRequest) -> LaneStates:
    """Full states of lanes and the last states of older epochs"""
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
    """Signed updates, or one, answered one by one; acknowledged means durable"""
    return await live.accept(view, branch, body.batch())
