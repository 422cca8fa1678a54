"""The command `svc auth status`."""

from __future__ import annotations

from localstore.core.errors import ServerUnreachable, Unauthorized
from localstore.core.model import auth
from svc.cmd.frame.context import Ctx
from svc.console import Column, answers
from svc.http.remote import link

COLUMNS = (
    Column("server"),
    Column("handle"),
    Column("state"),
    Column("source"),
    Column("signed_in_by", spare=1),
    Column("expires_at", kind="time"),
    Column("device_key_id"),
    Column("keys_in"),
    Column("user_id"),
    Column("session_id"),
)


@answers(COLUMNS)
def status(ctx: Ctx) -> None:
    """Show who you are on the server, and until when

    `state` is active, or unchecked if the server cannot be reached. `source` says where the session comes
    from: this machine's sign-in, SVC_TOKEN or ssh. `signed_in_by` is password, device_key, or the name of an
    identity provider of the server. `keys_in` says where this machine stores its keys. If there is no
    session, the exit code is 4.

    Examples:
    svc auth status
    svc auth status --jq .handle
    """
    run = ctx.obj
    from_token = bool(run.environment.get("SVC_TOKEN"))
    session = None if from_token else run.sessions.find(run.server)
    if session is None and not from_token:
        raise Unauthorized(f"nobody is signed in to {run.server} here; run: svc login --server {run.server}")
    in_keyring = run.sessions.identity.kept == "keyring"
    over_ssh = link(run.environment) is not None  # the keys are those of the client's machine
    record = {
        "server": run.server,
        "handle": session.handle if session else None,
        "state": "unchecked",
        "source": "ssh" if over_ssh else "SVC_TOKEN" if from_token else "svc login",
        "signed_in_by": None,
        "expires_at": session.expires_at if session else None,
        "device_key_id": None if over_ssh else run.sessions.identity.device.id,
        "keys_in": None if over_ssh else "OS keyring" if in_keyring else str(run.sessions.home),
        "user_id": session.user_id if session else None,
        "session_id": session.session_id if session else None,
    }
    try:
        me = ctx.api.send(auth.USER_INFO)
        record |= {
            "handle": me.handle,
            "state": "active",
            "expires_at": me.expires_at,
            "signed_in_by": me.signed_in_by,
            "user_id": me.user_id,
            "session_id": me.session_id,
        }
    except ServerUnreachable as error:
        ctx.out.note(f"svc: {error.detail}")
    ctx.out.record(record, COLUMNS)
