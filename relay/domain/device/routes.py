"""Routes of devices. `user_id` must be the caller's own account id; any other is answered with 404.

A new device has no session. It proves who it is to `process` and `complete` by the code that it scanned, and
later also by a signature of its key.
"""

from __future__ import annotations

from localstore.core.errors import Forbidden
from localstore.core.model import device as endpoints
from localstore.core.model.device import Device, PairingComplete, PairingProcess, PairingStep
from localstore.core.model.rights import OPERATIONS
from relay.caller import Caller
from relay.domain.device import device, pairing
from relay.gate.gate import admit
from relay.http.routing import Reply, serves

PAIR = OPERATIONS["device.pair"]

serves(endpoints.LIST, operation="device.list", errors=(404,))(device.page)
serves(endpoints.REVOKE, operation="device.revoke", errors=(404,))(device.revoke)
serves(endpoints.GENERATE, operation="device.pair", errors=(403, 404, 409, 429))(pairing.generate)


@serves(
    endpoints.PROCESS,
    operation="device.join",
    name="device.process",
    errors=(401, 403, 404, 409, 410, 422, 429),
    per_minute=600,
)
async def process(caller: Caller, user_id: str, body: PairingProcess) -> PairingStep:
    """Scan a pairing code, send the opening of its commitment, or read the state of the pairing"""
    _require_may_pair(caller)
    return await pairing.process(caller, user_id, body)


@serves(
    endpoints.COMPLETE,
    operation="device.join",
    name="device.complete",
    others=(202,),
    errors=(401, 403, 404, 409, 410, 422, 429),
    per_minute=120,
)
async def complete(caller: Caller, user_id: str, body: PairingComplete) -> Reply:
    """Confirm or refuse the digits of a pairing; 202 until both devices have confirmed"""
    _require_may_pair(caller)
    answer: Device = await pairing.complete(caller, user_id, body)
    return Reply(answer, status=202 if answer.paired_at is None else 201)


def _require_may_pair(caller: Caller) -> None:
    """Raise an error if a signed-in caller may not pair devices (operation `device.pair`). On other routes
    the gate checks this. A caller without a session passes."""
    if caller.principal is not None:
        admit(PAIR, caller)
        if PAIR.needs not in caller.me.caps:
            raise Forbidden(f"this session does not include {PAIR.needs!r}; run: svc login")
