"""The command `svc repo device status`."""

from __future__ import annotations

from localstore.core.model import auth
from svc.cmd.frame.context import Ctx
from svc.console import Column, answers

COLUMNS = (
    Column("id"),
    Column("name"),
    Column("state"),
    Column("created_at", kind="time"),
    Column("keys_in"),
)


@answers(COLUMNS)
def status(ctx: Ctx) -> None:
    """Show this machine's device key and whether it is registered

    `state` is registered, revoked, or not registered. The first push registers the key.

    Examples:
    svc repo device status
    svc repo device status --jq .state
    """
    identity = ctx.obj.sessions.identity
    own_key = next((key for key in ctx.api.items(auth.KEYS) if key.id == identity.device.id), None)
    state = "not registered" if own_key is None else "revoked" if own_key.revoked_at else "registered"
    record = {
        "id": identity.device.id,
        "name": own_key.name if own_key else None,
        "state": state,
        "created_at": own_key.created_at if own_key else None,
        "keys_in": "OS keyring" if identity.kept == "keyring" else str(ctx.obj.sessions.home),
    }
    ctx.out.record(record, COLUMNS)
