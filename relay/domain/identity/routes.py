"""Routes of sessions, sign-in of terminals (RFC 8628), device keys, handles and script tokens."""

from __future__ import annotations

import contextlib

import msgspec
from sanic.request import Request

from localstore.core.errors import BadRequest, Conflict, Unauthorized
from localstore.core.model import auth, limits
from localstore.core.model.auth import (
    DeviceKeyPatch,
    DeviceKeyProof,
    Handle,
    HandleChoice,
    RefreshRequest,
    RegisteredKey,
    SessionGrant,
)
from localstore.core.model.base import Model
from relay.base.clock import rfc3339
from relay.caller import Caller
from relay.domain.identity import account as accounts
from relay.domain.identity import device_grant, device_name, pairing
from relay.domain.identity import device_key as keys
from relay.domain.identity import session as sessions
from relay.domain.identity import token as tokens
from relay.domain.identity.session import NewSession
from relay.gate.gate import FORM
from relay.http import cookies
from relay.http.routing import REPOSITORIES, Reply, route, serves
from relay.pages import HTML, redirect, visit


class ReturnQuery(Model, frozen=True):
    """Where the browser goes after its session was renewed. `return_to`: a path of this node. `own`: the
    request came from a page of this node."""

    return_to: str = "/"
    own: bool = False


@serves(
    auth.GUEST_LOGIN,
    operation="session.guest",
    name="auth.guest_login",
    errors=(403, 429, 507),
    per_minute=60,
)
async def guest_login(caller: Caller, request: Request) -> Reply:
    """Start a guest session: an identity without credentials, for a day"""
    if cookies.sent_by_browser(request):
        cookies.require_own_page(caller.node.config, request)
    session = await sessions.start_guest(caller)
    cookie = cookies.session_cookie(caller.node.config, session.token, limits.GUEST_SESSION)
    return Reply(session.grant(), status=201, cookies=(cookie,))


serves(auth.USER_INFO, operation="session.info", name="auth.userinfo", errors=(401,))(sessions.user_info)


@serves(
    auth.REFRESH, operation="session.refresh", name="auth.refresh", errors=(401, 403, 409), per_minute=120
)
async def refresh(caller: Caller, request: Request, raw: bytes) -> Reply:
    """A new access token for a refresh token, which the cookie or the body ({refresh_token}) has

    A refresh token works once.
    """
    config = caller.node.config
    if raw:
        session = await sessions.refresh(caller, _parse_body(raw))
        grant = msgspec.structs.replace(session.grant(), refresh_token=session.refresh)
        return Reply(grant)
    token = cookies.read_cookie(request, cookies.refresh_name(config))
    if token:
        cookies.require_own_page(config, request)
    session = await sessions.refresh(caller, token)
    return Reply(
        SessionGrant(
            user_id=session.account_id,
            session_id=session.id,
            expires_at=rfc3339(session.expires_at),
            handle=session.handle,
        ),
        cookies=browser_cookies(caller, session),
    )


@route(
    "GET",
    cookies.REFRESH_PATH,
    operation="session.refresh",
    name="auth.renew",
    media=HTML,
    status=303,
    others=(200,),
    errors=(400, 429),
    per_minute=120,
)
async def renew(caller: Caller, request: Request, query: ReturnQuery) -> Reply:
    """Renew the session of a browser, then redirect to the requested page"""
    return_to = visit.local_path(query.return_to)
    if visit.is_valid_for_page(caller):
        return redirect(return_to)
    if not cookies.own_navigation(caller.node.config, request):
        return (
            visit.redirect_to_login(return_to) if query.own else visit.to_renewing_page(caller, return_to, 0)
        )
    try:
        session = await sessions.refresh(
            caller, cookies.read_cookie(request, cookies.refresh_name(caller.node.config))
        )
    except Conflict:  # another request of this browser has just renewed them
        return visit.to_renewing_page(caller, return_to, 1)
    except Unauthorized:
        return visit.redirect_to_login(return_to)
    return redirect(return_to, cookies=browser_cookies(caller, session))


@serves(auth.LOGOUT, operation="session.end", name="auth.logout", others=(303, 307), errors=(403,))
async def logout(caller: Caller, request: Request) -> Reply:
    """End this session and the terminals that were signed in from it"""
    if cookies.sent_by_browser(request):
        cookies.require_own_page(caller.node.config, request)
        if caller.principal is None and _is_from_form(request):  # the page's access token may have expired
            return Reply(status=307, headers={"location": auth.LOGOUT_BY_REFRESH.path})
    return await _sign_out(caller, request)


@serves(
    auth.LOGOUT_BY_REFRESH,
    operation="session.end",
    name="auth.logout_by_refresh",
    others=(303,),
    errors=(403,),
)
async def logout_by_refresh(caller: Caller, request: Request) -> Reply:
    """End the session that a refresh token belongs to; only a page of this node may send it"""
    cookies.require_own_page(caller.node.config, request)
    return await _sign_out(caller, request)


serves(auth.SESSIONS, operation="session.list", name="auth.list_sessions")(sessions.page)
serves(auth.REVOKE, operation="session.revoke", name="auth.revoke_session")(sessions.revoke)


def browser_cookies(caller: Caller, session: NewSession) -> tuple[str, str]:
    """The (session cookie, refresh cookie) of a browser that has just signed in."""
    config = caller.node.config
    return cookies.session_cookie(config, session.token), cookies.refresh(config, session.refresh)


async def _sign_out(caller: Caller, request: Request) -> Reply:
    config = caller.node.config
    token = None
    with contextlib.suppress(Unauthorized):  # an invalid cookie is deleted and ends no session
        token = cookies.read_cookie(request, cookies.refresh_name(config))
    await sessions.sign_out(caller, token)
    gone = cookies.cleared_cookies(config)
    if _is_from_form(request):
        return Reply(status=303, headers={"location": "/auth/login"}, cookies=gone)
    return Reply(status=204, cookies=gone)


def _is_from_form(request: Request) -> bool:
    """Whether a form on one of the node's pages sent the request. If so, the answer is a page."""
    return (request.headers.get("content-type") or "").startswith(FORM)


def _parse_body(raw: bytes) -> str:
    try:
        return msgspec.json.decode(raw, type=RefreshRequest).refresh_token
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise BadRequest("the body is not {refresh_token}; a browser sends its cookie and no body") from None


serves(auth.DEVICE_CODE, operation="terminal.start", name="cli_grant.start", errors=(429,))(
    device_grant.start
)
serves(auth.APPROVE, operation="terminal.approve", name="cli_grant.approve", errors=(403, 404, 410, 429))(
    device_grant.decide
)
serves(auth.CLAIM, operation="terminal.claim", name="cli_grant.claim", errors=(400,), forms=True)(
    device_grant.claim
)
serves(auth.KEY_CHALLENGE, operation="device_key.register", name="device_key.challenge", flag=REPOSITORIES)(
    keys.begin_registration
)
serves(auth.REGISTER_KEY, operation="device_key.register", flag=REPOSITORIES, errors=(409, 410))(
    keys.register
)
serves(auth.KEYS, operation="device_key.list", name="device_key.list_keys", flag=REPOSITORIES)(keys.page)


@serves(auth.RENAME_KEY, operation="device_key.rename", name="device_key.rename", flag=REPOSITORIES)
async def rename(caller: Caller, key_id: str, body: DeviceKeyPatch) -> RegisteredKey:
    """Rename one of the caller's devices"""
    return await device_name.rename(caller, key_id, body.name)


serves(auth.REVOKE_KEY, operation="device_key.revoke", flag=REPOSITORIES)(keys.revoke)
serves(
    auth.SIGN_IN_CHALLENGE,
    operation="device_key.sign_in",
    name="device_key.sign_in_challenge",
    errors=(403, 429),
)(keys.begin_sign_in)


@serves(
    auth.SIGN_IN,
    operation="device_key.sign_in",
    name="device_key.sign_in",
    errors=(401, 403, 409, 410, 429, 507),
)
async def sign_in(caller: Caller, body: DeviceKeyProof) -> SessionGrant:
    """Sign in with a registered key, claim a free handle with a new one, or join with a pairing code"""
    return (await keys.sign_in(caller, body)).grant()


serves(auth.PAIRING_CODE, operation="device_key.pair", name="device_key.pairing_code", errors=(429,))(
    pairing.create
)
serves(auth.HANDLE, operation="handle.get", name="handle.mine")(accounts.handle)


@serves(auth.CHANGE_HANDLE, operation="handle.change", name="handle.change", errors=(409,))
async def change(caller: Caller, body: HandleChoice) -> Handle:
    """Change the caller's handle; repositories stay reachable under the old one for 90 days"""
    return await accounts.change_handle(caller, body.handle)


serves(auth.CREATE_TOKEN, operation="token.create", errors=(403, 429), forms=True)(tokens.create)
serves(auth.TOKEN_KEYS, operation="token.keys", errors=(503,))(tokens.list_keys)
