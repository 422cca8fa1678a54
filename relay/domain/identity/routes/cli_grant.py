"""The device authorization grant (RFC 8628): a terminal asks, a browser approves, the terminal claims."""

from __future__ import annotations

from localstore.core.model import auth as endpoints
from localstore.core.model.auth import (
    Approval,
    ApprovalStatus,
    DeviceCode,
    DeviceCodeStart,
    SealedSession,
    TokenRequest,
)
from relay.caller import Caller
from relay.domain.identity import device_grant
from relay.http.routing import serves


@serves(endpoints.DEVICE_CODE, operation="terminal.start", errors=(429,))
async def start(caller: Caller, body: DeviceCodeStart) -> DeviceCode:
    """Start a terminal's sign-in"""
    return await device_grant.start(caller, body)


@serves(endpoints.APPROVE, operation="terminal.approve", errors=(403, 404, 410, 429))
async def approve(caller: Caller, body: Approval) -> ApprovalStatus:
    """Approve or deny a waiting terminal, by its fingerprint"""
    return await device_grant.decide(caller, body)


@serves(endpoints.CLAIM, operation="terminal.claim", errors=(400,), forms=True)
async def claim(caller: Caller, body: TokenRequest) -> SealedSession:
    """Claim the approved session, sealed to the terminal's transport key"""
    return await device_grant.claim(caller, body)
