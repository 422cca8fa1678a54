"""The page of the caller's devices. It shows a QR code to pair another device, and the digits to compare."""

from __future__ import annotations

from typing import Literal

from sanic.request import Request

from localstore.core.errors import SvcError
from localstore.core.model.base import PageQuery, Sent
from localstore.core.model.device import (
    PairingComplete,
    PairingCreate,
    PairingEnded,
    PairingProcess,
    PairingStep,
)
from localstore.core.model.rights import OPERATIONS
from localstore.core.validation import check_members
from relay.caller import Caller
from relay.domain.device import device as devices
from relay.domain.device import pairing
from relay.gate.gate import admit
from relay.http.routing import Reply, route
from relay.pages import HTML, page, redirect, visit

HERE = "/settings/devices"


class DevicesQuery(Sent, frozen=True, forbid_unknown_fields=False):
    """The query of the page of devices. `again`: whether the page says that the last form had no effect
    because the session had ended."""

    cursor: str | None = None
    again: bool = False


class PairForm(Sent, frozen=True):
    """The form beside a QR code, before it is validated. `answer`: `look` requests the state of the pairing;
    `same` and `different` say whether both devices show the same digits."""

    qr: str = ""
    answer: Literal["look", "same", "different"] = "look"


@route("GET", HERE, operation="page.settings", name="settings.devices", media=HTML, others=(303,))
async def devices_page(caller: Caller, request: Request, query: DevicesQuery) -> Reply:
    """The caller's devices"""
    if not visit.is_valid_for_page(caller):
        return visit.renew_and_return(request)
    note = visit.SENT_TOO_LATE if query.again else ""
    return await _show(caller, note=note, cursor=query.cursor)


@route(
    "POST",
    HERE,
    operation="page.settings",
    name="settings.draw_code",
    media=HTML,
    others=(303,),
    errors=(409,),
)
async def draw_code(caller: Caller, request: Request) -> Reply:
    """Draw a QR code for adding another device"""
    if late := visit.refuse_late(caller, request, HERE):
        return late
    try:
        admit(OPERATIONS["device.pair"], caller)
        code = await pairing.generate(caller, caller.me.account_id, PairingCreate())
        return await _show(caller, qr=code.qr)
    except SvcError as error:
        return await _show(caller, error=error)


@route(
    "POST",
    HERE + "/pair",
    operation="page.settings",
    name="settings.pair_device",
    media=HTML,
    forms=True,
    others=(303,),
    errors=(404, 409, 410),
)
async def pair_device(caller: Caller, request: Request, body: PairForm) -> Reply:
    """Show the digits of a pairing, or confirm or refuse them"""
    if late := visit.refuse_late(caller, request, HERE):
        return late
    step: PairingStep | None = None
    try:
        admit(OPERATIONS["device.pair"], caller)
        mine = caller.me.account_id
        step = await pairing.process(caller, mine, check_members(PairingProcess(qr=body.qr)))
        if step.status == "done":
            return await _show(caller, note="This device is paired.")
        if body.answer != "look":
            agrees = body.answer == "same"
            decision = PairingComplete(pairing_id=step.pairing_id, sas_confirmed=agrees)
            added = await pairing.complete(caller, mine, decision)
            return await _show(
                caller, note=f"{added.name or added.id[:12]} was {'added' if agrees else 'refused'}."
            )
        return await _show(caller, qr=body.qr, step=step)
    except SvcError as error:
        goes_on = step is not None and not isinstance(error, PairingEnded)
        return await _show(caller, error=error, qr=body.qr if goes_on else "", step=step)


@route(
    "POST",
    HERE + "/{id}/revoke",
    operation="page.settings",
    name="settings.revoke_device",
    media=HTML,
    status=303,
)
async def revoke_device(caller: Caller, request: Request, id: str) -> Reply:
    """Revoke a device"""
    if late := visit.refuse_late(caller, request, HERE):
        return late
    await devices.revoke(caller, caller.me.account_id, id)
    return redirect(HERE)


async def _show(
    caller: Caller,
    *,
    error: SvcError | None = None,
    note: str = "",
    qr: str = "",
    step: PairingStep | None = None,
    cursor: str | None = None,
) -> Reply:
    """Answer with the page of devices. `error`, `note`: a refusal or a message to show. `qr`: the text of the
    code of an unfinished pairing. `step`: the state of that pairing. `cursor`: where the list of devices
    continues."""
    admit(OPERATIONS["device.list"], caller)
    listed = await devices.page(caller, caller.me.account_id, PageQuery(cursor=cursor))
    return page(
        caller,
        "devices.html",
        error,
        problem=(error.detail or "this account has no such code") if error else "",
        note=note,
        qr=qr,
        picture=_draw(qr) if qr else "",
        step=step,
        devices=listed.items,
        next_cursor=listed.next_cursor,
    )


def _draw(text: str) -> str:
    """Draw the QR code of a text as SVG. It is dark on light with a margin, which scanners need."""
    import segno  # for whoever pairs a device, and at no start of the relay

    return segno.make(text, error="l", micro=False).svg_inline(scale=5, light="#fff")
