"""The caller's handle."""

from __future__ import annotations

from localstore.core.model import auth as endpoints
from localstore.core.model.auth import Handle, HandleChoice
from relay.caller import Caller
from relay.domain.identity import account as accounts
from relay.http.routing import serves


@serves(endpoints.HANDLE, operation="handle.get")
async def mine(caller: Caller) -> Handle:
    """The caller's handle"""
    return await accounts.handle(caller)


@serves(endpoints.CHANGE_HANDLE, operation="handle.change", errors=(409,))
async def change(caller: Caller, body: HandleChoice) -> Handle:
    """Change the caller's handle; repositories stay reachable under the old one for 90 days"""
    return await accounts.change_handle(caller, body.handle)
