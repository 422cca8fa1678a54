"""The commands `svc auth device …`."""

from __future__ import annotations

from typing import Annotated

import typer

from localstore.core.errors import NotFound
from localstore.core.identity.keys import TransportKey
from localstore.core.model import auth
from localstore.core.model.auth import DeviceKeyExists, DeviceKeyPatch, PairingCode, RegisteredKey
from localstore.core.model.limits import LABEL_CHARS
from svc.cmd.auth.login import device_name
from svc.cmd.frame.context import Ctx
from svc.cmd.frame.options import Limit
from svc.console import Column, answers
from svc.flows.sign_in import ssh_agent
from svc.flows.sign_in.login import register_device
from svc.http.identity import Identity

COLUMNS = (
    Column("id", kind="id"),
    Column("name"),
    Column("created_at", kind="time", spare=1),
    Column("last_used_at", kind="time"),
    Column("revoked_at", kind="time"),
)
KEY_MARK = "="  # in front of an id that begins with a dash, which would be an option
CODE_COLUMNS = (Column("code"), Column("expires_at", kind="time"))


@answers(CODE_COLUMNS, PairingCode)
def add(ctx: Ctx) -> None:
    """Make a one-time code with which another device joins

    The code works once, within ten minutes. On the other device:
    svc login --device-key --handle NAME --pair CODE

    Examples:
    svc auth device add
    svc auth device add --jq .code
    """
    code = ctx.api.send(auth.PAIRING_CODE)
    handle = ctx.api.send(auth.HANDLE).handle or "NAME"
    ctx.out.done(
        f"{code.code} works once, for ten minutes. On the other device:\n"
        f"  svc login --server {ctx.api.origin} --device-key --handle {handle} --pair {code.code}",
        code,
        CODE_COLUMNS,
        PairingCode,
        value=code.code,
    )


@answers(COLUMNS, RegisteredKey)
def ssh(
    ctx: Ctx,
    key: Annotated[str, typer.Argument(help="Its fingerprint or comment; of one key, that")] = "",
    name: Annotated[str, typer.Option("--name", help="What the device list calls it")] = "",
) -> None:
    """Register a key of your ssh-agent as a device key

    The agent proves with a signature that the Ed25519 key is yours. The key then opens the app over SSH, if
    the node offers that: ssh NODE -p PORT. svc auth device revoke revokes it.

    Examples:
    svc auth device ssh
    svc auth device ssh SHA256:uV3k… --name "Alice's tablet"
    """
    chosen = ssh_agent.choose(ssh_agent.keys(ctx.obj.environment), key)
    called = device_name(name) if name else device_name(f"ssh {chosen.comment}".strip()[:LABEL_CHARS])
    identity = Identity(chosen.key(ctx.obj.environment), TransportKey.generate(), "file")
    try:
        device = register_device(ctx.api, identity, called)
    except DeviceKeyExists:
        raise DeviceKeyExists(
            f"the key {chosen.fingerprint} of your ssh-agent belongs to another account here, or was "
            "revoked; name another one of your agent, or make one: ssh-keygen -t ed25519; ssh-add"
        ) from None
    ctx.out.done(
        f"Registered {chosen.fingerprint} as {device.name}", device, COLUMNS, RegisteredKey, value=device.id
    )


@answers((*COLUMNS, Column("this")), RegisteredKey)
def list_devices(ctx: Ctx, limit: Limit = 30) -> None:
    """List the device keys of your account

    Examples:
    svc auth device list
    svc auth device list --json id,name,this
    """
    credential = ctx.api.http.credential
    own = credential.key.id if credential else None
    this = Column("this", lambda record: record["id"] == own)  # two machines may well have one name
    columns = (*COLUMNS[:2], this, *COLUMNS[2:])
    ctx.out.rows(
        ctx.api.items(auth.KEYS, limit=limit), columns, RegisteredKey, empty="no device key is registered yet"
    )


@answers(COLUMNS, RegisteredKey)
def rename(
    ctx: Ctx,
    id: Annotated[str, typer.Argument(help="From svc auth device list, or its beginning")],
    name: Annotated[str, typer.Argument(help="The new name")],
) -> None:
    """Rename a device

    Examples:
    svc auth device rename nUv3kX2pQ0aB "Alice's laptop"
    """
    chosen = device_name(name)
    key = ctx.api.send(auth.RENAME_KEY, DeviceKeyPatch(name=chosen), key_id=_find_own_key(ctx, id).id)
    ctx.out.done(f"{key.id[:12]} is now called {key.name}", key, COLUMNS, RegisteredKey, value=key.name)


@answers(COLUMNS, RegisteredKey)
def revoke(
    ctx: Ctx,
    id: Annotated[str, typer.Argument(help="From svc auth device list, or its beginning")],
) -> None:
    """Revoke a device key; what it sealed stays valid

    Sessions bound to the key end, and the key cannot sign anything any more.

    Examples:
    svc auth device revoke nUv3kX2pQ0aB --yes
    """
    key = _find_own_key(ctx, id)
    note = " (this machine)" if key.id == ctx.obj.sessions.identity.device.id else ""
    ctx.confirm(f"Revoking the key {key.id[:12]} of {key.name or 'a device without a name'}{note}")
    ctx.api.send(auth.REVOKE_KEY, key_id=key.id)
    ctx.out.done(f"Revoked {key.id[:12]}{note}", key, COLUMNS, RegisteredKey, value=key.id)


def _find_own_key(ctx: Ctx, id: str) -> RegisteredKey:
    """Return the account's active device key whose id begins with `id`. Raises NotFound if there is none, or
    more than one."""
    begins = id.removeprefix(KEY_MARK)
    keys = [key for key in ctx.api.items(auth.KEYS) if key.id.startswith(begins) and key.revoked_at is None]
    if len(keys) != 1:
        what = "more than one key begins" if keys else "you have no active key that begins"
        raise NotFound(f"{what} with {begins}; see: svc auth device list")
    return keys[0]
