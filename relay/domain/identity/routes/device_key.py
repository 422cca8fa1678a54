"""Device keys, and signing in with one."""

from __future__ import annotations

from localstore.core.model import auth as endpoints
from localstore.core.model.auth import (
    Challenge,
    DeviceKey,
    DeviceKeyPatch,
    DeviceKeyProof,
    DeviceKeyStart,
    PairingCode,
    SessionGrant,
)
from localstore.core.model.base import Page, PageQuery
from relay.caller import Caller
from relay.domain.identity import device_key as keys
from relay.domain.identity import device_name, pairing
from relay.http.routing import Reply, serves

FLAG = "TR_REPOS_ENABLED"


@serves(endpoints.KEY_CHALLENGE, operation="device_key.register", flag=FLAG)
async def challenge(caller: Caller, body: DeviceKeyStart) -> Challenge:
    """A challenge that only the holder of both keys can answer"""
    return await keys.begin_registration(caller, body)


@serves(endpoints.REGISTER_KEY, operation="device_key.register", flag=FLAG, errors=(409, 410))
async def register(caller: Caller, body: DeviceKeyProof) -> DeviceKey:
    """Register the key whose challenge this answers"""
    return await keys.register(caller, body)


@serves(endpoints.KEYS, operation="device_key.list", flag=FLAG)
async def list_keys(caller: Caller, query: PageQuery) -> Page[DeviceKey]:
    """The caller's device keys, newest first"""
    return await keys.page(caller, query)


@serves(endpoints.RENAME_KEY, operation="device_key.rename", flag=FLAG)
async def rename(caller: Caller, key_id: str, body: DeviceKeyPatch) -> DeviceKey:
    """Rename one of the caller's devices"""
    return await device_name.rename(caller, key_id, body.name)


@serves(endpoints.REVOKE_KEY, operation="device_key.revoke", flag=FLAG)
async def revoke(caller: Caller, key_id: str) -> Reply:
    """Revoke a key and end its sessions; seals it signed earlier stay valid"""
    await keys.revoke(caller, key_id)
    return Reply(status=204)


@serves(endpoints.SIGN_IN_CHALLENGE, operation="device_key.sign_in", errors=(403, 429))
async def sign_in_challenge(caller: Caller, body: DeviceKeyStart) -> Challenge:
    """A challenge for signing in with a device key, without a browser"""
    return await keys.begin_sign_in(caller, body)


@serves(endpoints.SIGN_IN, operation="device_key.sign_in", errors=(401, 403, 409, 410, 429, 507))
async def sign_in(caller: Caller, body: DeviceKeyProof) -> SessionGrant:
    """Sign in with a registered key, claim a free handle with a new one, or join with a pairing code"""
    return (await keys.sign_in(caller, body)).grant()


@serves(endpoints.PAIRING_CODE, operation="device_key.pair", errors=(429,))
async def pairing_code(caller: Caller) -> PairingCode:
    """A one-time code with which another device joins this account"""
    return await pairing.create(caller)
