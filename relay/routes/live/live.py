"""The live frontier of a branch."""

from __future__ import annotations

from localstore.core.limits import KIB, UPDATE_BATCH_BYTES
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
from relay.http.routing import route
from relay.service.live import lane, live

FLAG = "TR_REPO_LIVE_TEXT"
BASE = "/api/v1/repos/{id}/branches/{branch}/live"
ENVELOPE = 4 * KIB  # what a batch holds beside its updates


@route("POST", f"{BASE}/bootstrap", operation="live.bootstrap", flag=FLAG, returns=Bootstrap, errors=(409,))
async def bootstrap(view: View, branch: str, body: BootstrapRequest) -> Bootstrap:
    """The frontier's rows, whole or since a number, and the folder's replica id"""
    return await live.bootstrap(view, branch, body)


@route("POST", f"{BASE}/lanes", operation="live.lanes", flag=FLAG, returns=LaneStates)
async def lanes(view: View, branch: str, body: LanesRequest) -> LaneStates:
    """Full states of lanes and the last states of older epochs"""
    return await lane.read(view, branch, body)


@route("POST", f"{BASE}/proof-context", operation="live.proof_context", flag=FLAG, returns=ProofContext)
async def proof_context(view: View, branch: str, body: ProofContextRequest) -> ProofContext:
    """The exact bytes that a device signs for an update"""
    return await live.proof_context(view, branch, body)


@route(
    "POST",
    f"{BASE}/updates",
    operation="live.updates",
    flag=FLAG,
    returns=UpdateAnswers,
    max_body=UPDATE_BATCH_BYTES + ENVELOPE,
    errors=(409,),
)
async def updates(view: View, branch: str, body: UpdatesRequest) -> UpdateAnswers:
    """Signed updates, or one, answered one by one; acknowledged means durable"""
    return await live.accept(view, branch, body.batch())
