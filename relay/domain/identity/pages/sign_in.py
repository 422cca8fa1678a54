"""The sign-in pages: by password, by an identity provider, and for a first sign-in. Also serves the
stylesheet of all pages.
"""

from __future__ import annotations

from sanic.request import Request

from localstore.core.errors import BadRequest, Forbidden, SvcError, Unauthorized, Unavailable
from localstore.core.model.auth import StateInvalid
from localstore.core.model.base import Model, Sent
from localstore.core.model.limits import OIDC_SIGN_IN
from localstore.core.model.repo import NameTaken
from localstore.core.paths import terminal_safe
from relay.base.providers import CALLBACK
from relay.caller import Caller
from relay.domain.identity import account as accounts
from relay.domain.identity import login as logins
from relay.domain.identity.routes import browser_cookies
from relay.domain.identity.rows.login import FlowRow
from relay.http import cookies
from relay.http.routing import Reply, route
from relay.pages import HTML, page, redirect, stylesheet
from relay.pages.visit import local_path

ARRIVAL = "/auth/arrival"
_STYLE_CACHE = {"cache-control": "public, max-age=3600"}


class LoginQuery(Model, frozen=True):
    """The query of the sign-in page. `return_to`: a path of this node. `provider`: the name of an identity
    provider, to which the browser is sent at once."""

    provider: str | None = None
    return_to: str = "/"


class LoginForm(Sent, frozen=True):
    handle: str
    password: str
    return_to: str = "/"


class CallbackQuery(Model, frozen=True):
    """The parameters that an identity provider adds when it sends the browser back (RFC 6749, RFC 9207)."""

    state: str = ""
    code: str = ""
    iss: str | None = None
    error: str | None = None


class ArrivalForm(Sent, frozen=True):
    handle: str


@route("GET", "/assets/style.css", operation="page.static", media="text/css")
async def style() -> Reply:
    """The stylesheet of the relay's pages"""
    return Reply(stylesheet(), content_type="text/css; charset=utf-8", headers=_STYLE_CACHE, compress=True)


@route(
    "GET",
    "/auth/login",
    operation="page.sign_in",
    media=HTML,
    others=(303,),
    errors=(400, 503),
    per_minute=120,
)
async def login_page(caller: Caller, query: LoginQuery) -> Reply:
    """Sign in with an account of this node, or by an identity provider"""
    if query.provider is None:
        return _login_page(caller, query)
    return await _to_provider(caller, query.provider, local_path(query.return_to))


async def callback(caller: Caller, request: Request, query: CallbackQuery) -> Reply:
    """Finish a sign-in, when an identity provider sends the browser back"""
    config = caller.node.config
    over = cookies.flow_cookie(config, "", 0)
    return_to = "/"
    try:
        row = await logins.use_up(caller, cookies.read_cookie(request, cookies.flow_name(config)))
        return_to = row.return_to  # another way to sign in leads there too
        if query.error is not None:
            raise Unauthorized("the provider did not sign you in; try again, or sign in another way")
        arrived = await logins.finish(caller, row, request.path, query.state, query.code, query.iss)
    except SvcError as error:
        return _login(caller, return_to, error, set_cookies=(over,))
    if arrived.flow is not None:
        return redirect(ARRIVAL, cookies=(cookies.flow_cookie(config, arrived.flow, OIDC_SIGN_IN),))
    if arrived.session is None:
        return redirect(arrived.return_to, cookies=(over,))
    return redirect(arrived.return_to, cookies=(*browser_cookies(caller, arrived.session), over))


for _path, _name in ((CALLBACK, "auth.callback"), (f"{CALLBACK}/{{id}}", "auth.callback_of")):
    route(
        "GET",
        _path,
        operation="page.sign_in",
        name=_name,
        media=HTML,
        others=(303,),
        errors=(400, 401, 403, 409, 503),
        per_minute=120,
    )(callback)


@route("GET", ARRIVAL, operation="page.sign_in", name="auth.arrival", media=HTML, errors=(400,))
async def arrival_page(caller: Caller, request: Request) -> Reply:
    """Choose a handle, at the first sign-in by an identity provider"""
    flow = cookies.read_cookie(request, cookies.flow_name(caller.node.config))
    return _arrival(caller, await logins.find_arriving(caller, flow))


@route(
    "POST",
    ARRIVAL,
    operation="page.sign_in",
    name="auth.arrive",
    media=HTML,
    forms=True,
    others=(303,),
    errors=(400, 403, 409, 507),
)
async def arrive(caller: Caller, request: Request, body: ArrivalForm) -> Reply:
    """Create the account of a person who signs in by an identity provider for the first time"""
    config = caller.node.config
    cookies.require_own_page(config, request)
    flow = cookies.read_cookie(request, cookies.flow_name(config))
    row = await logins.find_arriving(caller, flow)
    try:
        arrived = await logins.choose_handle(caller, flow, body.handle)
    except StateInvalid:
        raise
    except SvcError as error:
        return _arrival(caller, row, body.handle, error)
    over = cookies.flow_cookie(config, "", 0)
    session = () if arrived.session is None else browser_cookies(caller, arrived.session)
    return redirect(arrived.return_to, cookies=(*session, over))


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
        raise BadRequest("an identity provider signs in and signs up at /auth/login; omit provider")
    if sign_up and not caller.node.config.local_sign_up:
        return _login(caller, return_to, Forbidden("This node does not offer sign-up."))
    return _login(caller, return_to, sign_up=sign_up)


async def _to_provider(caller: Caller, name: str, return_to: str) -> Reply:
    """Send the browser to an identity provider. If the provider does not answer, show that on the sign-in
    page."""
    try:
        begun = await logins.begin(caller, name, return_to)
    except Unavailable as error:
        return _login(caller, return_to, error)
    return redirect(
        begun.location, cookies=(cookies.flow_cookie(caller.node.config, begun.flow, OIDC_SIGN_IN),)
    )


def _arrival(caller: Caller, row: FlowRow, handle: str | None = None, error: SvcError | None = None) -> Reply:
    typed = row.handle or "" if handle is None else handle
    return page(
        caller,
        "arrival.html",
        error,
        problem=error.detail if error else "",
        is_taken=isinstance(error, NameTaken),
        provider=logins.label_of(caller, row.provider),
        handle=terminal_safe(typed[:64]),
    )


async def _sign_in(caller: Caller, request: Request, body: LoginForm, *, sign_up: bool) -> Reply:
    cookies.require_own_page(caller.node.config, request)
    return_to = local_path(body.return_to)
    act = accounts.sign_up if sign_up else accounts.sign_in
    try:
        session = await act(caller, body.handle, body.password)
    except SvcError as error:
        return _login(caller, return_to, error, sign_up=sign_up, handle=body.handle)
    return redirect(return_to, cookies=browser_cookies(caller, session))


def _login(
    caller: Caller,
    return_to: str,
    error: SvcError | None = None,
    *,
    sign_up: bool = False,
    handle: str = "",
    set_cookies: tuple[str, ...] = (),
) -> Reply:
    config = caller.node.config
    return page(
        caller,
        "login.html",
        error,
        cookies=set_cookies,
        providers=[] if sign_up else caller.node.providers.all,
        return_to=return_to,
        problem=error.detail if error else "",
        sign_up=sign_up and config.local_sign_up,
        may_sign_up=config.local_sign_up,
        device_keys=config.device_key_sign_in,
        handle=terminal_safe(handle[:64]),  # what was typed comes back, and cannot turn the page around
    )
