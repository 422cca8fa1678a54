"""Pages for people: sign in, let a terminal in, tokens. Plain forms that call the same services."""

from __future__ import annotations

from typing import Literal
from urllib.parse import quote

from sanic.request import Request

from localstore.core.errors import BadRequest, NotFound, SvcError
from localstore.core.model import ScriptToken
from localstore.core.model.auth import Approval, ScriptTokenRequest
from localstore.core.model.base import Model
from relay import cookies
from relay.caller import Caller
from relay.db.device_grant import DeviceCodeRow
from relay.pages import HTML, page, redirect, stylesheet
from relay.routes.auth import signed_in
from relay.routing import Anonymous, Reply, route
from relay.service import account as accounts
from relay.service import device_grant
from relay.service import session as sessions
from relay.service import token as tokens

_STYLE_CACHE = {"cache-control": "public, max-age=3600"}


class LoginQuery(Model, frozen=True):
    """`return_to`: a path of this node. `provider`: none is configured."""

    provider: str | None = None
    return_to: str = "/"


class LoginForm(Model, frozen=True):
    handle: str
    password: str
    return_to: str = "/"


class AuthorizeQuery(Model, frozen=True):
    user_code: str | None = None


class DecisionForm(Model, frozen=True):
    user_code: str
    fingerprint: str
    decision: Literal["approve", "deny"]


class SettingsQuery(Model, frozen=True):
    tab: str = "tokens"
    cursor: str | None = None


@route("GET", "/assets/style.css", access=Anonymous(), media="text/css")
async def style() -> Reply:
    """The stylesheet of these pages"""
    return Reply(stylesheet(), content_type="text/css; charset=utf-8", headers=_STYLE_CACHE)


@route("GET", "/", access=Anonymous(), status=303)
async def home() -> Reply:
    """Where signing in leads when nothing else was asked for"""
    return redirect("/settings?tab=tokens")


@route("GET", "/auth/login", access=Anonymous(), media=HTML, errors=(400,))
async def login_page(caller: Caller, query: LoginQuery) -> Reply:
    """Sign in with an account of this node"""
    return _login_page(caller, query)


@route("GET", "/auth/sign-up", access=Anonymous(), media=HTML, errors=(400, 403))
async def sign_up_page(caller: Caller, query: LoginQuery) -> Reply:
    """Create an account of this node"""
    return _login_page(caller, query, sign_up=True)


@route("POST", "/auth/login", access=Anonymous(), media=HTML, forms=True, others=(303,))
async def login(caller: Caller, request: Request, body: LoginForm) -> Reply:
    """Sign in by password"""
    return await _sign_in(caller, request, body, sign_up=False)


@route("POST", "/auth/sign-up", access=Anonymous(), media=HTML, forms=True, others=(303,), errors=(409,))
async def sign_up(caller: Caller, request: Request, body: LoginForm) -> Reply:
    """Create an account and sign in"""
    return await _sign_in(caller, request, body, sign_up=True)


@route("GET", "/cli/authorize", access=Anonymous(), media=HTML, others=(302,), errors=(400, 404, 410))
async def authorize_page(caller: Caller, query: AuthorizeQuery) -> Reply:
    """Show a waiting terminal and ask whether to let it in"""
    here = "/cli/authorize" + (f"?user_code={quote(query.user_code, safe='')}" if query.user_code else "")
    if not _in_browser(caller):
        return _to_login(here)
    try:
        device_grant.approver(caller)
        if query.user_code is None:
            return _authorize(caller)
        row = await device_grant.waiting(caller, query.user_code)
        return _authorize(caller, waiting=row, fingerprint=device_grant.fingerprint(row))
    except SvcError as error:
        return _authorize(caller, error)


@route("POST", "/cli/authorize", access=Anonymous(), media=HTML, forms=True, others=(302,), errors=(404, 410))
async def authorize(caller: Caller, request: Request, body: DecisionForm) -> Reply:
    """Let the terminal in, or not"""
    cookies.require_own_page(caller.node.config, request)
    if not _in_browser(caller):
        return _to_login(f"/cli/authorize?user_code={quote(body.user_code, safe='')}")
    try:
        wish = Approval(user_code=body.user_code, fingerprint=body.fingerprint, decision=body.decision)
        answer = await device_grant.decide(caller, wish)
        return _authorize(caller, done=answer.status)
    except SvcError as error:
        return _authorize(caller, error)


@route("GET", "/settings", access=Anonymous(), media=HTML, others=(302,), errors=(404,))
async def settings(caller: Caller, query: SettingsQuery) -> Reply:
    """One's own tokens and sessions"""
    if query.tab != "tokens":
        raise NotFound
    if not _in_browser(caller):
        return _to_login("/settings?tab=tokens")
    return await _settings(caller, cursor=query.cursor)


@route("POST", "/settings/tokens", access=Anonymous(), media=HTML, forms=True, others=(302,))
async def create_token(caller: Caller, request: Request, body: ScriptTokenRequest) -> Reply:
    """Make a token for scripts and show it once"""
    cookies.require_own_page(caller.node.config, request)
    if not _in_browser(caller):
        return _to_login("/settings?tab=tokens")
    try:
        return await _settings(caller, made=await tokens.create(caller, body))
    except SvcError as error:
        return await _settings(caller, error)


@route("POST", "/settings/tokens/{id}/revoke", access=Anonymous(), media=HTML, status=303, others=(302,))
async def revoke_token(caller: Caller, request: Request, id: str) -> Reply:
    """End a session or token"""
    cookies.require_own_page(caller.node.config, request)
    if not _in_browser(caller):
        return _to_login("/settings?tab=tokens")
    await sessions.revoke(caller, id)
    if id == caller.me.session_id:
        return redirect("/auth/login", cookies=cookies.cleared(caller.node.config))
    return redirect("/settings?tab=tokens")


def local_path(path: str) -> str:
    """Where to go after signing in. BadRequest for anything a browser could read as another site."""
    if path[:1] != "/" or path[1:2] in ("/", "\\") or not path.isascii() or not path.isprintable():
        raise BadRequest("return_to must be a path of this node: one slash, then no other")
    return path


def _login_page(caller: Caller, query: LoginQuery, *, sign_up: bool = False) -> Reply:
    return_to = local_path(query.return_to)
    if query.provider is not None or not accounts.local_sign_in(caller):
        raise BadRequest("this node has no such identity provider; leave provider away")
    if sign_up and not caller.node.config.local_sign_up:
        return _login(caller, return_to, problem="This node does not make accounts here.", status=403)
    return _login(caller, return_to, sign_up=sign_up)


async def _sign_in(caller: Caller, request: Request, body: LoginForm, *, sign_up: bool) -> Reply:
    cookies.require_own_page(caller.node.config, request)
    return_to = local_path(body.return_to)
    act = accounts.sign_up if sign_up else accounts.sign_in
    try:
        made = await act(caller, body.handle, body.password)
    except SvcError as error:
        return _login(
            caller, return_to, problem=error.detail, status=error.status, sign_up=sign_up, handle=body.handle
        )
    return redirect(return_to, cookies=signed_in(caller, made))


def _login(
    caller: Caller,
    return_to: str,
    *,
    problem: str = "",
    status: int = 200,
    sign_up: bool = False,
    handle: str = "",
) -> Reply:
    config = caller.node.config
    return page(
        caller,
        "login.html",
        status,
        return_to=return_to,
        problem=problem,
        sign_up=sign_up and config.local_sign_up,
        may_sign_up=config.local_sign_up,
        device_keys=config.device_key_sign_in,
        handle=handle[:64],
    )


def _authorize(
    caller: Caller,
    error: SvcError | None = None,
    *,
    waiting: DeviceCodeRow | None = None,
    fingerprint: str = "",
    done: str = "",
) -> Reply:
    problem = (
        (error.detail or "there is no such code; type it again as the terminal shows it") if error else ""
    )
    return page(
        caller,
        "authorize.html",
        error.status if error else 200,
        problem=problem,
        waiting=waiting,
        fingerprint=fingerprint,
        done=done,
    )


async def _settings(
    caller: Caller,
    error: SvcError | None = None,
    *,
    made: ScriptToken | None = None,
    cursor: str | None = None,
) -> Reply:
    listed = await sessions.page(caller, cursor, None)
    return page(
        caller,
        "tokens.html",
        error.status if error else 200,
        problem=error.detail if error else "",
        made=made,
        sessions=listed.items,
        next_cursor=listed.next_cursor,
    )


def _in_browser(caller: Caller) -> bool:
    return caller.principal is not None and caller.principal.via == "cookie"


def _to_login(return_to: str) -> Reply:
    return Reply(
        status=302,
        headers={
            "location": f"/auth/login?return_to={quote(return_to, safe='')}",
            "cache-control": "no-store",
        },
    )
