"""Script tokens."""

from __future__ import annotations

from localstore.core.model import auth as endpoints
from localstore.core.model.auth import ScriptToken, ScriptTokenRequest
from relay.caller import Caller
from relay.domain.identity import token as tokens
from relay.http.routing import serves


@serves(endpoints.CREATE_TOKEN, operation="token.create", errors=(403, 429), forms=True)
async def create(caller: Caller, body: ScriptTokenRequest) -> ScriptToken:
    """Create a script token; its text is shown only once"""
    return await tokens.create(caller, body)
