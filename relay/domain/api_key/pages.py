"""The page of the caller's API keys."""

from __future__ import annotations

import datetime
from typing import Literal

from sanic.request import Request

from localstore.core.errors import Invalid, NotFound, SvcError
from localstore.core.model.api_key import ApiKeyCreate, ApiKeyRotate, ApiKeySecret
from localstore.core.model.base import PageQuery, Sent
from localstore.core.model.limits import LABEL_CHARS
from localstore.core.model.rights import OPERATIONS, Capability
from localstore.core.validation import check_members
from relay.caller import Caller
from relay.domain.api_key import api_key as rules
from relay.gate.gate import admit
from relay.http.routing import Reply, route
from relay.pages import HTML, page, redirect, visit

HERE = "/settings/keys"
MOST_DAYS = 36_500
SCOPES: dict[str, list[Capability]] = {
    "read": ["read"],
    "write": ["read", "write"],
    "admin": ["read", "write", "admin"],
}


class KeyForm(Sent, frozen=True):
    """The form for a new key, before it is validated, so that the page can show errors. If `days` is 0, the
    key never expires."""

    name: str = ""
    scope: Literal["read", "write", "admin"] = "read"
    days: int = 0


class RotateForm(Sent, frozen=True):
    """The form that requests a new secret for a key. `overlap`: seconds for which the previous secret stays
    valid."""

    overlap: int = 0


class KeysQuery(KeyForm, frozen=True, forbid_unknown_fields=False):
    """The query of the page of API keys. `again`: whether the page says that the last form had no effect
    because the session had ended."""

    cursor: str | None = None
    again: bool = False


@route("GET", HERE, operation="page.settings", name="settings.keys", media=HTML, others=(303,))
async def keys_page(caller: Caller, request: Request, query: KeysQuery) -> Reply:
    """The caller's API keys"""
    if not visit.is_valid_for_page(caller):
        return visit.renew_and_return(request)
    return await _show(caller, query, again=query.again, cursor=query.cursor)


@route(
    "POST",
    HERE,
    operation="page.settings",
    name="settings.create_key",
    media=HTML,
    forms=True,
    others=(303,),
    errors=(409,),
)
async def create_key(caller: Caller, request: Request, body: KeyForm) -> Reply:
    """Create an API key and show its secret once"""
    sent = {"name": body.name[:LABEL_CHARS], "scope": body.scope, "days": str(body.days)}
    if late := visit.refuse_late(caller, request, HERE, **sent):
        return late
    try:
        if not 0 <= body.days <= MOST_DAYS:
            raise Invalid(f"a key lives 1 to {MOST_DAYS} days, or until it is revoked (0)", pointer="/days")
        ends = None
        if body.days:
            ends = datetime.datetime.now(datetime.UTC) + datetime.timedelta(days=body.days)
        admit(OPERATIONS["api_key.create"], caller)
        draft = check_members(ApiKeyCreate(name=body.name, scopes=SCOPES[body.scope], expires_at=ends))
        return await _show(caller, secret=await rules.create(caller, caller.me.account_id, draft))
    except SvcError as error:
        return await _show(caller, body, error)


@route(
    "POST",
    HERE + "/{id}/rotate",
    operation="page.settings",
    name="settings.rotate_key",
    media=HTML,
    forms=True,
    others=(303,),
    errors=(409,),
)
async def rotate_key(caller: Caller, request: Request, id: str, body: RotateForm) -> Reply:
    """Give an API key a new secret and show it once"""
    if late := visit.refuse_late(caller, request, HERE):
        return late
    try:
        admit(OPERATIONS["api_key.rotate"], caller)
        rotation = check_members(ApiKeyRotate(overlap_seconds=body.overlap))
        return await _show(caller, secret=await rules.rotate(caller, caller.me.account_id, id, rotation))
    except NotFound:
        raise
    except SvcError as error:
        return await _show(caller, error=error)


@route(
    "POST",
    HERE + "/{id}/revoke",
    operation="page.settings",
    name="settings.revoke_key",
    media=HTML,
    status=303,
)
async def revoke_key(caller: Caller, request: Request, id: str) -> Reply:
    """Revoke an API key for ever"""
    if late := visit.refuse_late(caller, request, HERE):
        return late
    await rules.revoke(caller, caller.me.account_id, id)
    return redirect(HERE)


async def _show(
    caller: Caller,
    form: KeyForm | None = None,
    error: SvcError | None = None,
    *,
    secret: ApiKeySecret | None = None,
    again: bool = False,
    cursor: str | None = None,
) -> Reply:
    keys = await rules.page(caller, caller.me.account_id, PageQuery(cursor=cursor))
    return page(
        caller,
        "keys.html",
        error,
        note=visit.SENT_TOO_LATE if again else "",
        form=form or KeyForm(),
        secret=secret,
        keys=keys.items,
        next_cursor=keys.next_cursor,
    )
