"""Script tokens. Each is created in a browser session, shown once, and bound to a key of its own."""

from __future__ import annotations

from localstore.core.encoding import b64u
from localstore.core.errors import Forbidden, Invalid
from localstore.core.identity import bearer
from localstore.core.identity.keys import DeviceKey
from localstore.core.model.auth import IdentityLevel, ScriptToken, ScriptTokenRequest, TokenKeys
from relay.base.clock import now_ms, rfc3339
from relay.caller import Caller
from relay.capacity.limiter import Attempts
from relay.domain.identity import audit
from relay.domain.identity import session as sessions
from relay.domain.identity.device_key import check_label

DAY = 24 * 3600 * 1000  # milliseconds
CAPS = {"read": ("read",), "write": ("read", "write"), "admin": ("admin", "read", "write")}

_NEW = Attempts("script_token.account", 60, 3600, "script tokens that an account makes")


async def create(caller: Caller, body: ScriptTokenRequest) -> ScriptToken:
    """Create a script token; its text is shown only once

    The text is for SVC_TOKEN. It contains the token and the seed of the key that the token is bound to. The
    relay stores neither, so a lost token cannot be shown again.
    """
    me = caller.me
    if me.via != "cookie":
        raise Forbidden("script tokens are made in a browser session, not with another token")
    if me.is_guest:
        raise IdentityLevel("a guest has no script tokens; sign in with an account")
    name = check_label(body.label)
    if not name:
        raise Invalid("name the token after what will use it", pointer="/label")
    _NEW.count(caller.node.limiter, me.account_id)
    binding = DeviceKey.generate()
    plan = await sessions.plan_session(
        caller.node,
        me.account_id,
        "script",
        name,
        now_ms() + body.days * DAY,
        bound_key=binding.public,
        caps=CAPS[body.access],
    )
    text = bearer.format_script_token(caller.node.config.public_url, bearer.from_text(plan.token), binding)
    answer = ScriptToken(id=plan.id, token=text, expires_at=rfc3339(plan.expires_at))
    async with caller.write() as tx:
        await plan.write(tx)
        await audit.record(
            tx, me.account_id, "token.create", plan.id, label=name, access=body.access, address=caller.address
        )
    return answer


async def list_keys(caller: Caller) -> TokenKeys:
    """Public keys for verifying tokens of this node"""
    node = caller.node
    keys = await node.sign_in.tokens.public_keys(node.signer.public_keys)
    return TokenKeys(keys={str(number): b64u(public) for number, public in keys.items()})
