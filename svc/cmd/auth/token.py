"""`svc auth token …`. Script tokens are created in the browser, at /settings?tab=tokens."""

from __future__ import annotations

from typing import Annotated

import typer

from localstore.core.errors import NotFound
from localstore.core.model import auth
from localstore.core.model.auth import Session
from svc.cmd.frame.context import Ctx
from svc.cmd.frame.options import Limit
from svc.console import Column, answers

COLUMNS = (
    Column("id"),
    Column("kind", spare=1),
    Column("label"),
    Column("created_at", kind="time", spare=4),
    Column("expires_at", kind="time"),
    Column("last_used_at", kind="time", spare=3),
    Column("current", spare=2),
)


@answers(COLUMNS, Session)
def list_tokens(ctx: Ctx, limit: Limit = 30) -> None:
    """List your sessions and script tokens

    Create script tokens in the browser, at /settings?tab=tokens. Each is shown there only once.

    Examples:
    svc auth token list
    svc auth token list --json id,label --jq '.[] | select(.label == "ci") | .id'
    """
    ctx.out.rows(ctx.api.items(auth.SESSIONS, limit=limit), COLUMNS, Session, empty="no sessions")


@answers((Column("id"),))
def revoke(ctx: Ctx, id: Annotated[str, typer.Argument(help="From svc auth token list")]) -> None:
    """End a session or script token

    Everything that signed in through it ends too.

    Examples:
    svc auth token revoke 01JD8X…
    """
    try:
        ctx.api.send(auth.REVOKE, id=id)
    except NotFound:
        raise NotFound(f"you have no session or token {id}; see: svc auth token list") from None
    ctx.out.done(f"Revoked {id}", {"id": id}, (Column("id"),), value=id)
