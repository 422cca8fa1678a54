"""Script tokens."""

from __future__ import annotations

from localstore.core.encoding import b64u
from localstore.core.model import auth as endpoints
from localstore.core.model.auth import ScriptToken, ScriptTokenRequest, TokenKeys
from relay.caller import Caller
from relay.http.routing import serves
from relay.service.identity import token as tokens


@serves(endpoints.CREATE_TOKEN, operation="token.create", errors=(403, 429), forms=True)
async def create(caller: Caller, body: ScriptTokenRequest) -> ScriptToken:
    """Create a script token; its text is shown only once"""
    return await tokens.create(caller, body)


@serves(endpoints.TOKEN_KEYS, operation="token.keys", errors=(503,))
async def list_keys(caller: Caller) -> TokenKeys:
    """Public keys by which tokens of this node verify"""
    node = caller.node
    keys = await node.sign_in.tokens.public_keys(node.signer.public_keys)
    return TokenKeys(keys={str(number): b64u(public) for number, public in keys.items()})
