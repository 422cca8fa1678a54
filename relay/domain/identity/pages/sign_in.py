"""The sign-in pages, and parts that all pages need: plain forms that call the services."""

from __future__ import annotations

from sanic.request import Request

from localstore.core.errors import BadRequest, SvcError
from localstore.core.model.base import Model, Sent
from localstore.core.paths import PROSE, terminal_safe
from relay.caller import Caller
from relay.domain.identity import account as accounts
from relay.domain.identity.routes import signed_in
from relay.http import cookies
from relay.http.routing import Reply, route
from relay.pages import HTML, page, redirect, stylesheet
from relay.pages.visit import local_path

_STYLE_CACHE = {"cache-control": "public, max-age=3600"}


class LoginQuery(Model, frozen=True):
    """`return_to`: a path of this node. `provider`: none is configured."""

    provider: str | None = None
    return_to: str = "/"


class LoginForm(Sent, frozen=True):
    handle: str
    password: str
    return_to: str = "/"


@route("GET", "/assets/style.css", operation="page.static", media="text/css")
async def style() -> Reply:
    """The stylesheet of these pages"""
    return Reply(stylesheet(), content_type="text/css; charset=utf-8", headers=_STYLE_CACHE)


@route("GET", "/auth/login", operation="page.sign_in", media=HTML, errors=(400,))
async def login_page(caller: Caller, query: LoginQuery) -> Reply:
    """Sign in with an account of this node"""
    return _login_page(caller, query)


@route("GET", "/auth/sign-up", operation="page.sign_in", media=HTML, errors=(400, 403))
async def sign_up_page(caller: Caller, query: LoginQuery) -> Reply:
    """Create an account of this node"""
    return _login_page(caller, query, sign_up=True)


@route("POST", "/auth/login", operation="page.sign_in", media=HTML, forms=True, others=(303,))
async def login(caller: Caller, request: Request, body: LoginForm) -> Reply:
    """Sign in by password"""
    return await _sign_in(caller, request, body, sign_up=False)


@route(
    "POST",
    "/auth/sign-up",
    operation="page.sign_in",
    media=HTML,
    forms=True,
    others=(303,),
    errors=(409, 507),
)
async def sign_up(caller: Caller, request: Request, body: LoginForm) -> Reply:
    """Create an account and sign in"""
    return await _sign_in(caller, request, body, sign_up=True)


def _login_page(caller: Caller, query: LoginQuery, *, sign_up: bool = False) -> Reply:
    return_to = local_path(query.return_to)
    if query.provider is not None:
        raise BadRequest("this node has no such identity provider; omit provider")
    if sign_up and not caller.node.config.local_sign_up:
        return _login(caller, return_to, problem="This node does not offer sign-up.", status=403)
    return _login(caller, return_to, sign_up=sign_up)


async def _sign_in(caller: Caller, request: Request, body: LoginForm, *, sign_up: bool) -> Reply:
    cookies.require_own_page(caller.node.config, request)
    return_to = local_path(body.return_to)
    act = accounts.sign_up if sign_up else accounts.sign_in
    try:
        session = await act(caller, body.handle, body.password)
    except SvcError as error:
        return _login(
            caller,
            return_to,
            problem=error.detail,
            status=error.status,
            sign_up=sign_up,
            handle=body.handle,
            problem_of=error,
        )
    return redirect(return_to, cookies=signed_in(caller, session))


def _login(
    caller: Caller,
    return_to: str,
    *,
    problem: str = "",
    status: int = 200,
    sign_up: bool = False,
    handle: str = "",
    problem_of: SvcError | None = None,
) -> Reply:
    config = caller.node.config
    return page(
        caller,
        "login.html",
        status,
        problem_of=problem_of,
        return_to=return_to,
        problem=terminal_safe(problem, PROSE),
        sign_up=sign_up and config.local_sign_up,
        may_sign_up=config.local_sign_up,
        device_keys=config.device_key_sign_in,
        handle=terminal_safe(handle[:64]),  # what was typed comes back, and cannot turn the page around
    )
