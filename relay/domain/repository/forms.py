"""The one route that receives all forms of a repository's pages.

A form names an act (`acts.ACTS`). The act calls the function of an API operation, with the rights that this
operation needs. After success the browser is sent to a page (303). After a refusal the page of the form is
shown again, with the reason and the typed text. A form that is sent twice takes effect once, because its key
is used as an Idempotency-Key.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace

from sanic.request import Request

from localstore.core.errors import Forbidden, NotFound, SvcError
from localstore.core.model.rights import OPERATIONS, Operation, choose_capability
from relay.caller import Caller
from relay.domain.repository.act_form import ActForm, Attempt
from relay.domain.repository.acts import ACTS, Act
from relay.domain.repository.place import ShownRepository, find
from relay.gate.gate import admit, require_node_can, view_of
from relay.http import cookies
from relay.http.problems import rate_headers
from relay.http.routing import Reply
from relay.once import AnsweredBefore, Once, StoredAnswer
from relay.pages import HTML, page, redirect, visit

Show = Callable[[ShownRepository], Awaitable[Reply]]


async def act(
    caller: Caller, owner: str, name: str, request: Request, form: ActForm, body: bytes, show: Show
) -> Reply:
    """Carry out the act of a form. `body`: the bytes of the form. `show`: a function that makes the page with
    the form again."""
    cookies.require_own_page(caller.node.config, request)
    address = visit.with_query(request.path, request)
    if not visit.in_browser(caller):  # its session has ended: nobody knows yet who sends it
        return _ask_to_sign_in(caller, address, form)
    place = await find(caller, owner, name)
    row = ACTS.get(form.name_of_act)
    if row is None:
        raise NotFound
    try:
        return redirect(await _run(caller, place, row, form, request, body) or address)
    except SvcError as problem:
        reply = await show(replace(place, attempt=Attempt(form, problem)))
        headers = {"cache-control": "no-store", "referrer-policy": "same-origin", **rate_headers(problem)}
        return Reply(reply.body, status=problem.status, headers=headers, content_type=HTML)


async def _run(
    caller: Caller, place: ShownRepository, row: Act, form: ActForm, request: Request, body: bytes
) -> str | None:
    """Carry out the act, and store the address of the next page under the form's key. Returns that address.
    If the form was sent before, returns the stored address."""
    view = await _asking(OPERATIONS[row.operation], caller, place)
    view.once = Once.of(request, body, caller.me.account_id, form.key or None)
    try:
        onward = await row.run(view, place, form)
        await view.conclude(StoredAnswer(303, b"", None, [("location", onward)] if onward else []))
        return onward
    except AnsweredBefore as before:
        return dict(before.answer.headers).get("location")
    except SvcError:
        await view.conclude(None)
        raise
    except BaseException as error:
        await asyncio.shield(view.abandon(error))
        raise


async def _asking(operation: Operation, caller: Caller, place: ShownRepository) -> Caller:
    """Make the view that the gate would make for an API request of this operation. If the operation is about
    an account, returns the caller."""
    if not place.offers(operation.name):
        raise NotFound
    needed = choose_capability(operation.needs, caller.me.caps)
    if needed not in caller.me.caps:
        raise Forbidden(f"this session may not {needed!r}; sign in again")
    require_node_can(operation, caller.node)
    if operation.about != "repository":
        return admit(operation, caller)
    return await view_of(operation, caller, place.repo.id)


def _ask_to_sign_in(caller: Caller, address: str, form: ActForm) -> Reply:
    """A page with the same form, which asks the reader to sign in on another page and then to send the form
    again. It shows nothing about the repository, which may be hidden from this reader."""
    fields = {name: value for name in form.__struct_fields__ if (value := getattr(form, name))}
    return page(
        caller, "again.html", status=401, address=address, renew=visit.renewal_path("/"), fields=fields
    )
