"""The page of the caller's settings: tokens and sessions, and the ways to sign in."""

from __future__ import annotations

from typing import Literal
from urllib.parse import urlencode

from sanic.request import Request

from localstore.core.errors import NotFound, SvcError, Unavailable
from localstore.core.model.auth import LastWayIn, ScriptToken, ScriptTokenRequest
from localstore.core.model.base import PageQuery, Sent
from localstore.core.model.limits import LABEL_CHARS, OIDC_SIGN_IN
from localstore.core.validation import check_members
from relay.caller import Caller
from relay.domain.identity import login as logins
from relay.domain.identity import session as sessions
from relay.domain.identity import token as tokens
from relay.http import cookies
from relay.http.routing import Reply, route
from relay.pages import HTML, page, redirect, visit

HERE = "/settings"


class TokenForm(Sent, frozen=True):
    """The form for a new token, before it is validated, so that the page can show errors."""

    label: str = ""
    days: int = 30
    access: Literal["read", "write", "admin"] = "write"


class SettingsQuery(TokenForm, frozen=True, forbid_unknown_fields=False):
    """The query of the page of settings. `again`: whether the page says that the last form had no effect
    because the session had ended. `unlinked`: the provider that has just been unlinked."""

    tab: str = "tokens"
    cursor: str | None = None
    again: bool = False
    unlinked: str = ""


@route("GET", HERE, operation="page.settings", media=HTML, others=(303,), errors=(404,))
async def settings(caller: Caller, request: Request, query: SettingsQuery) -> Reply:
    """The caller's tokens and sessions, and ways to sign in"""
    if query.tab not in ("tokens", "sign-in"):
        raise NotFound
    if not visit.is_valid_for_page(caller):
        return visit.renew_and_return(request)
    if query.tab == "sign-in":
        return await _ways(caller, again=query.again, unlinked=query.unlinked)
    return await _settings(caller, query, again=query.again, cursor=query.cursor)


@route("POST", HERE + "/tokens", operation="page.settings", media=HTML, forms=True, others=(303,))
async def create_token(caller: Caller, request: Request, body: TokenForm) -> Reply:
    """Create a script token and show it once"""
    sent = {"label": body.label[:LABEL_CHARS], "days": str(body.days), "access": body.access}
    if late := visit.refuse_late(caller, request, HERE, **sent):
        return late
    try:
        token_request = check_members(
            ScriptTokenRequest(label=body.label, days=body.days, access=body.access)
        )
        return await _settings(caller, token=await tokens.create(caller, token_request))
    except SvcError as error:
        return await _settings(caller, body, error)


@route("POST", HERE + "/tokens/{id}/revoke", operation="page.settings", media=HTML, status=303)
async def revoke_token(caller: Caller, request: Request, id: str) -> Reply:
    """End a session or token"""
    if late := visit.refuse_late(caller, request, HERE):
        return late
    await sessions.revoke(caller, id)
    if id == caller.me.session_id:
        return redirect("/auth/login", cookies=cookies.cleared_cookies(caller.node.config))
    return redirect(f"{HERE}?tab=tokens")


@route(
    "POST",
    HERE + "/sign-in/{id}/link",
    operation="page.settings",
    name="settings.link",
    media=HTML,
    others=(303,),
    errors=(400, 403, 503),
)
async def link(caller: Caller, request: Request, id: str) -> Reply:
    """Link an identity provider to the caller's account"""
    if late := visit.refuse_late(caller, request, HERE, tab="sign-in"):
        return late
    try:
        begun = await logins.begin(caller, id, f"{HERE}?tab=sign-in", link=True)
    except Unavailable as error:
        return await _ways(caller, error)
    flow = cookies.flow_cookie(caller.node.config, begun.flow, OIDC_SIGN_IN)
    # A page, since browsers do not let a form of ours lead to another site (Content-Security-Policy).
    return page(
        caller, "leave.html", cookies=(flow,), path=begun.location, provider=logins.label_of(caller, id)
    )


@route(
    "POST",
    HERE + "/sign-in/{id}/unlink",
    operation="page.settings",
    name="settings.unlink",
    media=HTML,
    others=(303,),
    errors=(409,),
)
async def unlink(caller: Caller, request: Request, id: str) -> Reply:
    """Unlink an identity provider from the caller's account"""
    if late := visit.refuse_late(caller, request, HERE, tab="sign-in"):
        return late
    try:
        await logins.unlink(caller, id)
    except LastWayIn as error:
        return await _ways(caller, error)
    return redirect(f"{HERE}?{urlencode({'tab': 'sign-in', 'unlinked': id})}")


async def _ways(
    caller: Caller, error: SvcError | None = None, *, again: bool = False, unlinked: str = ""
) -> Reply:
    ways = await logins.list_ways(caller)
    label = next((provider.label for provider in ways.unlinked if provider.name == unlinked), "")
    return page(
        caller,
        "ways.html",
        error,
        note=visit.SENT_TOO_LATE if again else "",
        ways=ways,
        unlinked=label,
        sessions_left=await logins.other_sessions(caller, unlinked) if label else 0,
    )


async def _settings(
    caller: Caller,
    body: TokenForm | None = None,
    error: SvcError | None = None,
    *,
    token: ScriptToken | None = None,
    again: bool = False,
    cursor: str | None = None,
) -> Reply:
    session_page = await sessions.page(caller, PageQuery(cursor=cursor))
    return page(
        caller,
        "tokens.html",
        error,
        note=visit.SENT_TOO_LATE if again else "",
        form=body or TokenForm(),
        made=token,
        sessions=session_page.items,
        next_cursor=session_page.next_cursor,
    )
