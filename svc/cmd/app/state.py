"""`svc app list|status|logs`: how the apps of this machine are."""

from __future__ import annotations

from typing import Annotated

import typer

from localstore.core.errors import UsageError
from localstore.core.paths import terminal_safe
from svc.cmd.app.launch import STATE, Id, apps_of
from svc.cmd.frame.context import Ctx
from svc.console import Column, answers, answers_text
from svc.flows.apps.place import LOG
from svc.flows.apps.state import AppState, state_of

LISTED = (
    Column("id", kind="name"),
    Column("state", kind="state"),
    Column("pid"),
    Column("model"),
    Column("since_at", kind="time"),
    Column("folder"),
)


@answers(LISTED, AppState)
def list_apps(ctx: Ctx) -> None:
    """List the apps of this machine, and which of them run

    Those that were installed, and folders that were launched.

    Examples:
    svc app list
    svc app list --json id,state
    """
    apps = apps_of(ctx)
    rows = [state_of(apps, app) for app in apps.all()]
    ctx.out.rows(rows, LISTED, AppState, empty="no apps; svc app launch FOLDER starts one")


@answers(STATE, AppState)
def status(ctx: Ctx, id: Id) -> None:
    """Show an app: whether it runs, and with which model

    Examples:
    svc app status alice/notes
    svc app status alice/notes --json state,pid
    """
    apps = apps_of(ctx)
    ctx.out.record(state_of(apps, apps.find(id, ctx.obj.folder)), STATE, AppState)


@answers_text
def logs(
    ctx: Ctx,
    id: Id,
    lines: Annotated[
        int, typer.Option("-n", "--lines", metavar="N", help="How many of the last lines")
    ] = 100,
    follow: Annotated[bool, typer.Option("-f", "--follow", help="Go on until Ctrl-C")] = False,
) -> None:
    """Print what an app in the background printed

    Examples:
    svc app logs alice/notes
    svc app logs alice/notes -n 20 --follow
    """
    from localstore.models import log

    if lines < 0:
        raise UsageError("--lines must be a number of lines")
    apps = apps_of(ctx)
    app = apps.find(id, ctx.obj.folder)
    file = apps.folder(app.id) / LOG
    text = log.tail(file, lines) if lines else ""
    if text:
        ctx.out.text(terminal_safe(text, keep="\n\t") + "\n")
    elif not follow:
        ctx.out.note("the log is empty; it has what the app prints in the background")
    if follow:
        for piece in log.follow(file):
            ctx.out.draw(terminal_safe(piece, keep="\n\t"))
