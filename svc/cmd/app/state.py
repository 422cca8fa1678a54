"""The commands `svc app list|status|logs`."""

from __future__ import annotations

from svc.cmd.app.launch import STATE, IdOrHere, apps_of
from svc.cmd.frame.context import Ctx
from svc.cmd.frame.logs import Follow, Lines, print_log
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

    Lists installed apps, and folders that were launched.

    Examples:
    svc app list
    svc app list --json id,state
    """
    apps = apps_of(ctx)
    rows = [state_of(apps, app) for app in apps.all()]
    ctx.out.rows(rows, LISTED, AppState, empty="no apps; svc app launch FOLDER starts one")


@answers(STATE, AppState)
def status(ctx: Ctx, id: IdOrHere = ".") -> None:
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
    id: IdOrHere = ".",
    lines: Lines = 100,
    follow: Follow = False,
) -> None:
    """Print what an app in the background printed

    Examples:
    svc app logs alice/notes
    svc app logs alice/notes -n 20 --follow
    """
    apps = apps_of(ctx)
    app = apps.find(id, ctx.obj.folder)
    empty = "the log is empty; an app that has a terminal prints there, and not in the log"
    print_log(ctx, apps.folder(app.id) / LOG, lines, follow, empty)
