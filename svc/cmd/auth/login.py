"""The commands `svc login`, `svc logout`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from localstore import known, seen_documents
from localstore.core.errors import NotFound, ServerUnreachable, Unauthorized, UsageError
from localstore.core.identity.pairing import PairingText
from localstore.core.model import auth
from localstore.core.model.auth import HandleTaken
from localstore.core.model.limits import LABEL_CHARS
from localstore.core.paths import terminal_safe
from svc.cmd.auth import git
from svc.cmd.frame.context import Ctx
from svc.console import Column, answers

COLUMNS = (
    Column("handle"),
    Column("server"),
    Column("expires_at", kind="time"),
    Column("device_key_id", kind="id"),
)


@answers(COLUMNS)
def login(
    ctx: Ctx,
    device_key: Annotated[
        bool, typer.Option("--device-key", help="Sign in by this machine's key alone, without a browser")
    ] = False,
    handle: Annotated[
        str, typer.Option("--handle", metavar="NAME", help="The account, with --device-key")
    ] = "",
    pair: Annotated[
        str,
        typer.Option("--pair", metavar="CODE", help="Join an account with a code from svc auth device add"),
    ] = "",
    qr: Annotated[
        str,
        typer.Option("--qr", metavar="TEXT", help="Join an account by the code of svc auth device pair"),
    ] = "",
    name: Annotated[
        str, typer.Option("--name", metavar="NAME", help="The name of this machine; else user@host")
    ] = "",
    new_key: Annotated[
        bool, typer.Option("--new-key", help="Give this machine a new key first, as after a revocation")
    ] = False,
    git_credential: Annotated[
        bool | None,
        typer.Option(
            "--git-credential/--no-git-credential",
            help="Let git read private repositories by this sign-in; else asked on a terminal",
        ),
    ] = None,
) -> None:
    """Sign in to a server

    Without options you approve this machine on a page in a browser: the command prints a fingerprint, an
    address and a code, and waits. Compare the fingerprint on the page with the one printed here.

    With --device-key this machine signs in with its own key. If the handle is free, a new account with this
    handle is made for the key. A further machine needs a one-time code: run `svc auth device add` where you
    are signed in. Or run `svc auth device pair` there and give the text of its QR code to --qr here; both
    machines then show six digits to compare.

    Examples:
    svc login --server https://node.example
    svc login --server node.example --device-key --handle alice
    svc login --device-key --handle alice --pair BCDF-GHJK-LMNP --name laptop
    svc login --qr svc-pair:1:ASNFZ4mrTe-BI0Vni…
    svc login --new-key
    svc login --git-credential
    """
    if (handle or pair) and not device_key:
        raise UsageError("--handle and --pair belong to --device-key; add it")
    if device_key and not handle:
        raise UsageError("--device-key needs the account's name; add --handle NAME")
    if qr and device_key:
        raise UsageError("--qr and --device-key are two ways to sign in; use one of them")
    chosen = device_name(name) if name else ""
    run = ctx.obj
    scanned = _read_code(ctx, qr) if qr else None
    origin = scanned.origin if scanned else run.sign_in_server
    if git_credential:
        from svc.flows.git import settings

        settings.require_free(origin)
    from svc.flows.sign_in.login import by_browser, by_device_key
    from svc.http.origin import is_loopback

    if origin.startswith("http:") and not is_loopback(origin):
        ctx.out.note(f"warning: {origin} is not encrypted; others on the way can read what you send")
    if new_key:
        ctx.confirm("Replacing this machine's device key signs it out of every server")
        run.sessions.renew_identity()
    if scanned:
        from svc.cmd.auth.pairing import join

        session = join(ctx, scanned, chosen)
    elif device_key:
        try:
            session = by_device_key(origin, run.sessions, handle, pair or None, chosen)
        except HandleTaken:
            raise HandleTaken(_not_known(handle, pair)) from None
        except NotFound:
            raise NotFound(f"{origin} does not offer the sign-in by device key; run: svc login") from None
    else:
        session = by_browser(origin, run.sessions, lambda approval: _show(ctx, approval), chosen)
    who = session.handle or session.user_id
    ctx.out.done(
        f"Signed in to {origin} as {who}",
        {
            "handle": session.handle,
            "server": origin,
            "expires_at": session.expires_at,
            "device_key_id": run.sessions.identity.device.id,
        },
        COLUMNS,
        value=who,
    )
    if git_credential or (git_credential is None and git.offer(ctx, origin)):
        ctx.out.note(git.register(origin)[0])


def device_name(typed: str) -> str:
    """Return the name of a machine without spaces around it. Raises UsageError if the relay would refuse the
    name."""
    name = typed.strip()
    if not name or len(name) > LABEL_CHARS or not name.isprintable():
        raise UsageError(f"a device's name is one line of 1 to {LABEL_CHARS} characters")
    return name


def _read_code(ctx: Ctx, qr: str) -> PairingText:
    from svc.cmd.auth.pairing import read_code

    return read_code(ctx, qr)


def _not_known(handle: str, pair: str) -> str:
    """Return the error sentence for a machine whose key does not belong to the account."""
    code = f"svc login --device-key --handle {handle} --pair CODE"
    if pair:
        return (
            f"{handle} does not take the code {terminal_safe(pair)}: it is mistyped, used, older than ten "
            f"minutes, or another account's; where you are signed in run: svc auth device add, then "
            f"here: {code}"
        )
    return (
        f"{handle} belongs to an account that does not know this machine; on a machine that is "
        f"signed in run: svc auth device add, then here: {code}"
    )


@answers((Column("server"),))
def logout(ctx: Ctx) -> None:
    """End this machine's session

    The session ends on the server, with everything that signed in through it. The device key stays
    registered: `svc login --device-key` signs in again.

    Examples:
    svc logout
    """
    run = ctx.obj
    origin = run.server
    if run.sessions.find(origin) is None:
        raise Unauthorized(f"nobody is signed in to {origin} here; svc auth status shows more")
    try:
        ctx.api.send(auth.LOGOUT)
    except Unauthorized:
        ctx.out.note("the session had ended already")
    except ServerUnreachable as error:
        ctx.out.note(f"svc: {error.detail}")
        ctx.out.note("the session is forgotten here; on the server it lives until it expires")
    run.sessions.forget(origin)
    _forget_seen(run.home.root, origin)
    ctx.out.done(f"Signed out of {origin}", {"server": origin}, (Column("server"),), value=origin)


def _forget_seen(home: Path, origin: str) -> None:
    """Delete what this device has cached of the server, because it belongs to the account that was signed
    in."""
    file = home / known.FILE
    if file.exists():
        store = known.Store(file)
        store.forget_server(origin)
        store.close()
    file = home / seen_documents.FILE
    if file.exists():
        documents = seen_documents.SeenDocuments(file)
        documents.forget_server(origin)
        documents.close()


def _show(ctx: Ctx, approval: object) -> None:
    from svc.cmd.frame.browser import can_open
    from svc.flows.sign_in.login import Approval

    if not isinstance(approval, Approval):
        raise TypeError(approval)
    ctx.out.note(f"Fingerprint of this machine: {approval.fingerprint}")
    ctx.out.note(f"Open {approval.url} and enter the code {approval.user_code}")
    if can_open(ctx.out, ctx.obj.environment):
        import webbrowser

        webbrowser.open(approval.url_with_code, new=2)
    ctx.out.note("Waiting for your approval there …")
