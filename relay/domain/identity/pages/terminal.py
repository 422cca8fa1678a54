"""The page on which a user approves or denies the sign-in of a terminal (RFC 8628)."""

from __future__ import annotations

from typing import Literal

from sanic.request import Request

from localstore.core.errors import SvcError
from localstore.core.model.auth import Approval
from localstore.core.model.base import Model, Sent
from relay.caller import Caller
from relay.domain.identity import device_grant
from relay.domain.identity.rows.device_grant import DeviceCodeRow
from relay.http.routing import Reply, route
from relay.pages import HTML, page, visit

HERE = "/cli/authorize"


class AuthorizeQuery(Model, frozen=True):
    """The query of the approval page. `again`: whether the page says that the last decision had no effect
    because the session had ended."""

    user_code: str | None = None
    again: bool = False


class DecisionForm(Sent, frozen=True):
    user_code: str
    fingerprint: str
    decision: Literal["approve", "deny"]


@route("GET", HERE, operation="page.terminal", media=HTML, others=(303,), errors=(400, 404, 410))
async def authorize_page(caller: Caller, request: Request, query: AuthorizeQuery) -> Reply:
    """Show a waiting terminal and ask whether to approve it"""
    if not visit.is_valid_for_page(caller):
        return visit.renew_and_return(request)
    try:
        device_grant.require_approver(caller)
        if query.user_code is None:
            return _authorize(caller)
        row = await device_grant.find_waiting(caller, query.user_code)
        note = visit.SENT_TOO_LATE if query.again else ""
        return _authorize(caller, waiting=row, fingerprint=device_grant.fingerprint(row), note=note)
    except SvcError as error:
        return _authorize(caller, error)


@route("POST", HERE, operation="page.terminal", media=HTML, forms=True, others=(303,), errors=(404, 410))
async def authorize(caller: Caller, request: Request, body: DecisionForm) -> Reply:
    """Approve or deny the terminal"""
    if late := visit.refuse_late(caller, request, HERE, user_code=body.user_code):
        return late
    try:
        approval = Approval(user_code=body.user_code, fingerprint=body.fingerprint, decision=body.decision)
        answer = await device_grant.decide(caller, approval)
        return _authorize(caller, done=answer.status)
    except SvcError as error:
        return _authorize(caller, error)


def _authorize(
    caller: Caller,
    error: SvcError | None = None,
    *,
    waiting: DeviceCodeRow | None = None,
    fingerprint: str = "",
    done: str = "",
    note: str = "",
) -> Reply:
    problem = (
        (error.detail or "there is no such code; type it exactly as the terminal shows it") if error else ""
    )
    return page(
        caller,
        "authorize.html",
        error,
        problem=problem,
        waiting=waiting,
        fingerprint=fingerprint,
        done=done,
        note=note,
    )
