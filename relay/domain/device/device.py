"""Devices of an account: its device keys that are not revoked."""

from __future__ import annotations

from localstore.core.encoding import b64u
from localstore.core.model.base import Page, PageQuery
from localstore.core.model.device import Device
from relay.base.clock import rfc3339, rfc3339_or_none
from relay.caller import Caller
from relay.db import paging
from relay.db.identity import device_key as device_keys
from relay.db.identity.device_key import DeviceKeyRow
from relay.domain.device.rows import pairing as rows
from relay.domain.identity import device_key


async def page(caller: Caller, user_id: str, query: PageQuery) -> Page[Device]:
    """The caller's devices, newest first, without revoked ones"""
    account = caller.require_me(user_id)
    async with caller.read() as tx:
        return await paging.read_page(
            tx, rows.DEVICES, query, lambda row: to_wire(device_keys.to_row(row)), account=account
        )


async def revoke(caller: Caller, user_id: str, device_id: str) -> None:
    """Revoke a device: its key can no longer sign anything, and its sessions and sockets end"""
    caller.require_me(user_id)
    await device_key.revoke(caller, device_id)


def to_wire(key: DeviceKeyRow) -> Device:
    return Device(
        id=key.id,
        name=key.name,
        public_key=b64u(key.ed25519),
        paired_at=rfc3339(key.created_at),
        last_seen_at=rfc3339_or_none(key.last_used_at),
    )
