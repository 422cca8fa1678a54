"""The device authorization grant (RFC 8628): a terminal asks, a browser approves, the terminal claims."""

from __future__ import annotations

from localstore.core.model.auth import (
    Approval,
    ApprovalStatus,
    DeviceCode,
    DeviceCodeStart,
    SealedSession,
    TokenRequest,
)
from relay.caller import Caller
from relay.http.routing import route
from relay.service.identity import device_grant


@route("POST", "/api/v1/auth/cli/device-code", operation="terminal.start", returns=DeviceCode, errors=(429,))
async def start(caller: Caller, body: DeviceCodeStart) -> DeviceCode:
    """Start a terminal's sign-in"""
    return await device_grant.start(caller, body)


@route(
    "POST",
    "/api/v1/auth/cli/approve",
    operation="terminal.approve",
    returns=ApprovalStatus,
    errors=(403, 404, 410, 429),
)
async def approve(caller: Caller, body: Approval) -> ApprovalStatus:
    """Approve or deny a waiting terminal, by its fingerprint"""
    return await device_grant.decide(caller, body)


@route(
    "POST",
    "/api/v1/auth/cli/token",
    operation="terminal.claim",
    returns=SealedSession,
    errors=(400,),
    forms=True,
)
async def claim(caller: Caller, body: TokenRequest) -> SealedSession:
    """Claim the approved session, sealed to the terminal's transport key"""
    return await device_grant.claim(caller, body)
