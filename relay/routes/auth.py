"""Sessions: guests, who am I, refresh, sign-out; and the list of one's own."""

from __future__ import annotations

import msgspec
from sanic.request import Request

from localstore.core import limits
from localstore.core.errors import BadRequest
from localstore.core.model import Page, Session, SessionGrant, UserInfo
from localstore.core.model.auth import RefreshRequest
from localstore.core.model.base import Model
from relay import cookies
from relay.caller import Caller
from relay.clock import rfc3339
from relay.gate import FORM
from relay.routing import Anonymous, Reply, SignedIn, route
from relay.service import session as sessions
from relay.service.session import Made


class ListQuery(Model, frozen=True):
    cursor: str | None = None
    limit: int | None = None


@route(
    "POST",
    "/auth/guest-login",
    access=Anonymous(),
    returns=SessionGrant,
    status=201,
    errors=(403, 429),
    per_minute=60,
)
async def guest_login(caller: Caller, request: Request) -> Reply:
    """A guest session: an identity without credentials, for a day"""
    if cookies.sent_by_browser(request):
        cookies.require_own_page(caller.node.config, request)
    made = await sessions.start_guest(caller)
    cookie = cookies.session(caller.node.config, made.token, limits.GUEST_SESSION)
    return Reply(made.grant(), status=201, cookies=(cookie,))


@route("GET", "/auth/userinfo", access=Anonymous(), returns=UserInfo, errors=(401,))
async def userinfo(caller: Caller) -> UserInfo:
    """Who is signed in, and how"""
    return await sessions.user_info(caller)


@route(
    "POST", "/auth/refresh", access=Anonymous(), returns=SessionGrant, errors=(401, 403, 409), per_minute=120
)
async def refresh(caller: Caller, request: Request, raw: bytes) -> Reply:
    """A fresh access token for the refresh cookie, or for {refresh_token} in the body; each works once"""
    config = caller.node.config
    if raw:
        made = await sessions.refresh(caller, _in_body(raw))
        grant = msgspec.structs.replace(made.grant(), refresh_token=made.refresh)
        return Reply(grant)
    token = request.cookies.get(cookies.refresh_name(config))
    if token:
        cookies.require_own_page(config, request)
    made = await sessions.refresh(caller, token)
    return Reply(
        SessionGrant(
            user_id=made.account_id,
            session_id=made.id,
            expires_at=rfc3339(made.expires_at),
            handle=made.handle,
        ),
        cookies=signed_in(caller, made),
    )


@route("POST", "/auth/logout", access=Anonymous(), status=204, others=(303,))
async def logout(caller: Caller, request: Request) -> Reply:
    """End this session and the terminals that were signed in from it"""
    await sessions.sign_out(caller)
    gone = cookies.cleared(caller.node.config)
    if (request.headers.get("content-type") or "").startswith(FORM):
        return Reply(status=303, headers={"location": "/auth/login"}, cookies=gone)
    return Reply(status=204, cookies=gone)


@route("GET", "/api/v1/auth/tokens", access=SignedIn(guests=True), returns=Page[Session])
async def list_sessions(caller: Caller, query: ListQuery) -> Page[Session]:
    """One's own open sessions and script tokens, newest first"""
    return await sessions.page(caller, query.cursor, query.limit)


@route("DELETE", "/api/v1/auth/tokens/{id}", access=SignedIn(guests=True, op="admin"), status=204)
async def revoke_session(caller: Caller, id: str) -> Reply:
    """End one of one's own sessions or script tokens, at once"""
    await sessions.revoke(caller, id)
    return Reply(status=204)


def signed_in(caller: Caller, made: Made) -> tuple[str, str]:
    """The cookies of a browser that has just signed in."""
    config = caller.node.config
    return cookies.session(config, made.token), cookies.refresh(config, made.refresh)


def _in_body(raw: bytes) -> str:
    try:
        return msgspec.json.decode(raw, type=RefreshRequest).refresh_token
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise BadRequest("the body is not {refresh_token}; a browser sends its cookie and no body") from None
