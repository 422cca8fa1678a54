"""`svc auth device pair`, and `svc login --qr`."""

from __future__ import annotations

from typing import Annotated

import typer

from localstore.core.errors import ConfirmationNeeded, UsageError
from localstore.core.identity.pairing import PairingText
from localstore.core.model import auth
from localstore.core.model.device import Device
from svc.cmd.auth.login import device_name
from svc.cmd.frame.context import Ctx
from svc.console import Column, answers
from svc.http.origin import parse_origin, same_server
from svc.http.session import Session

COLUMNS = (
    Column("id", kind="id"),
    Column("name"),
    Column("paired_at", kind="time"),
    Column("last_seen_at", kind="time", spare=1),
)


@answers(COLUMNS, Device)
def pair(
    ctx: Ctx,
    name: Annotated[
        str, typer.Option("--name", help="What the new device is called; else it says so itself")
    ] = "",
) -> None:
    """Add another device by a QR code and six digits

    The command draws a code and waits for the other device, where you give the text of the code to svc login
    --qr. Both devices then show six digits. If the digits are the same, nobody has tampered with the
    connection. --yes skips the question, and with it the comparison.

    Examples:
    svc auth device pair
    svc auth device pair --name "Alice's tablet"
    """
    chosen = device_name(name) if name else ""
    require_person(ctx, "Adding a device after comparing six digits")
    from svc.flows.sign_in.pairing import offer

    me = ctx.api.send(auth.HANDLE)
    device = offer(
        ctx.api,
        me.user_id,
        chosen,
        lambda text: _show(ctx, text),
        lambda digits, other: confirm(ctx, digits, f"{other or 'a device without a name'} is added"),
    )
    ctx.out.done(f"Added {device.name or device.id[:12]}", device, COLUMNS, Device, value=device.id)


def read_code(ctx: Ctx, qr: str) -> PairingText:
    """Read the text of a pairing code. Raises UsageError if it is not a pairing code, or if it is from
    another server than --server names. Raises ConfirmationNeeded if nobody can compare the digits."""
    from svc.flows.sign_in import pairing

    text = pairing.read_code(qr)
    server = ctx.obj.given.get("server")
    if server and not same_server(parse_origin(server), text.origin):
        raise UsageError(f"this code is of {text.origin}; omit --server, or scan a code of {server}")
    require_person(ctx, "Joining an account after comparing six digits")
    return text


def join(ctx: Ctx, text: PairingText, name: str) -> Session:
    """Join the account of a scanned code, sign in as this device, and return the session. `name` is the name
    of the device."""
    from svc.flows.sign_in import pairing

    ctx.out.note("Waiting for the device that shows the code …")
    return pairing.join(
        text,
        ctx.obj.sessions,
        name,
        lambda digits, handle: confirm(ctx, digits, f"this machine joins the account {handle}"),
    )


def require_person(ctx: Ctx, action: str) -> None:
    """Raise ConfirmationNeeded if nobody can be asked and `--yes` is not given. `action` has words for the
    error."""
    if not ctx.obj.given.get("yes") and not ctx.out.interactive:
        raise ConfirmationNeeded(action)


def confirm(ctx: Ctx, digits: str, effect: str) -> bool:
    """Show the six digits, ask whether the other device shows the same digits, and return the answer. With
    `--yes`, returns True without asking. `effect` says in the question what happens after a yes."""
    ctx.out.note(f"Digits: {digits[:3]} {digits[3:]}")
    if ctx.obj.given.get("yes"):
        return True
    return ctx.out.ask(f"Does the other device show the same digits? Then {effect}.")


def _show(ctx: Ctx, text: str) -> None:
    """Draw the QR code if it fits on the terminal, and print its text."""
    from svc.flows.sign_in.pairing import draw

    if ctx.out.noted:
        lines = draw(text)
        if len(lines[0]) <= ctx.out.width:
            for line in lines:
                ctx.out.note(line)
    ctx.out.note("Scan the code within ten minutes, or run there:")
    ctx.out.note(f"  svc login --qr {text}")
    ctx.out.note("Waiting for the other device …")
