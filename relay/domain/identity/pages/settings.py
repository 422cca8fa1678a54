"""The page of the caller's tokens and sessions."""

from __future__ import annotations

from typing import Literal

from sanic.request import Request

from localstore.core.errors import NotFound, SvcError
from localstore.core.limits import LABEL_CHARS
from localstore.core.model.auth import ScriptToken, ScriptTokenRequest
from localstore.core.model.base import PageQuery, Sent
from localstore.core.validation import checked
from relay.caller import Caller
from relay.domain.identity import session as sessions
from relay.domain.identity import token as tokens
from relay.http import cookies
from relay.http.routing import Reply, route
from relay.pages import HTML, page, redirect, visit

HERE = "/settings"


class TokenForm(Sent, frozen=True):
    """The form for a new token, unchecked: the page reports errors."""

    label: str = ""
    days: int = 30
    access: Literal["read", "write", "admin"] = "write"


class SettingsQuery(TokenForm, frozen=True, forbid_unknown_fields=False):
    """`again`: a form was sent after the session had ended, and changed nothing."""

    tab: str = "tokens"
    cursor: str | None = None
    again: bool = False


@route("GET", HERE, operation="page.settings", media=HTML, others=(303,), errors=(404,))
async def settings(caller: Caller, request: Request, query: SettingsQuery) -> Reply:
    """The caller's tokens and sessions"""
    if query.tab != "tokens":
        raise NotFound
    if not visit.lasts(caller):
        return visit.detour(request)
    return await _settings(caller, query, again=query.again, cursor=query.cursor)


@route("POST", HERE + "/tokens", operation="page.settings", media=HTML, forms=True, others=(303,))
async def create_token(caller: Caller, request: Request, body: TokenForm) -> Reply:
    """Create a script token and show it once"""
    cookies.require_own_page(caller.node.config, request)
    if not visit.in_browser(caller):
        label = body.label[:LABEL_CHARS]
        return visit.too_late(HERE, label=label, days=str(body.days), access=body.access)
    try:
        token_request = checked(ScriptTokenRequest(label=body.label, days=body.days, access=body.access))
        return await _settings(caller, token=await tokens.create(caller, token_request))
    except SvcError as error:
        return await _settings(caller, body, error)


@route("POST", HERE + "/tokens/{id}/revoke", operation="page.settings", media=HTML, status=303)
async def revoke_token(caller: Caller, request: Request, id: str) -> Reply:
    """End a session or token"""
    cookies.require_own_page(caller.node.config, request)
    if not visit.in_browser(caller):
        return visit.too_late(HERE)
    await sessions.revoke(caller, id)
    if id == caller.me.session_id:
        return redirect("/auth/login", cookies=cookies.cleared(caller.node.config))
    return redirect(f"{HERE}?tab=tokens")


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
        error.status if error else 200,
        problem_of=error,
        problem=error.detail if error else "",
        note=visit.SENT_TOO_LATE if again else "",
        form=body or TokenForm(),
        made=token,
        sessions=session_page.items,
        next_cursor=session_page.next_cursor,
    )
