"""The commands `svc app launch|stop|restart|open`."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from localstore.core.errors import EXIT_FAILED, UsageError
from localstore.core.paths import terminal_safe
from localstore.models.errors import AppFailed
from svc.cmd.frame.browser import open_page
from svc.cmd.frame.context import Ctx
from svc.console import Column, answers
from svc.flows.apps.place import App, Apps, is_own, launch_of, manifest_of
from svc.flows.apps.state import AppState, state_of

if TYPE_CHECKING:
    import subprocess

    from localstore.core.launch import Launch
    from svc.console.progress import Meter

STATE = (
    Column("id", kind="name"),
    Column("state", kind="state"),
    Column("pid"),
    Column("model"),
    Column("page"),
    Column("since_at", kind="time"),
    Column("code"),
    Column("detail", kind="line"),
    Column("llm", spare=1),
    Column("supervisor", spare=1),
    Column("folder", spare=1),
    Column("installed", spare=1),
    Column("notes", spare=1),
    Column("pulled", spare=1),
)
Id = Annotated[
    str,
    typer.Argument(metavar="ID|FOLDER", help="Its name in svc app list, or the folder with its .svc.yaml"),
]
IdOrHere = Annotated[
    str,
    typer.Argument(
        metavar="[ID|FOLDER]",
        help="Its name in svc app list, or its folder; else the folder you are in",
    ),
]


def apps_of(ctx: Ctx) -> Apps:
    return Apps(ctx.obj.home.root)


@answers(STATE, AppState)
def launch(
    ctx: Ctx,
    id: IdOrHere = ".",
    detach: Annotated[
        bool, typer.Option("--detach", help="Leave it running in the background, and return once it is ready")
    ] = False,
) -> None:
    """Start an app, after the server and the models that it needs

    .svc.yaml in its folder has the command, as `launch: {command: [..]}`. If the app needs models (listed
    under `models`), the local LLM server is started if none answers, and missing models are pulled first. The
    app gets the LLM server's address in OLLAMA_HOST and OPENAI_BASE_URL. Your script token is removed from
    its environment. You are asked before an app runs for the first time, and again if what .svc.yaml says
    under `launch` has changed. Without --detach the app uses this terminal, and its exit code is the exit
    code of this command.

    Examples:
    svc app launch ./notes
    svc app launch alice/notes --detach
    """
    apps = apps_of(ctx)
    app = apps.find(id, ctx.obj.folder)
    require_allowed(ctx, apps, app)
    if state_of(apps, app).supervisor is not None:
        _wait_until_started(ctx, apps, app, None)
        return
    if detach:
        start_in_background(ctx, apps, app)
        return
    from svc.flows.apps.supervise import Supervisor
    from svc.flows.place.where import Where

    where = Where(ctx.obj.environment, Path(app.folder), ctx.out.note, ctx.out.meter, "svc app launch")
    try:
        code = Supervisor(where, app, log=None, note=ctx.out.note, report=report_to(ctx.out.meter)).run()
    finally:
        where.close()
    ctx.out.note(f"{app.id} ended with {code}")
    if ctx.out.format.as_data:
        ctx.out.done("", state_of(apps, app), STATE, AppState)
    ctx.exit(code)


@answers(STATE, AppState)
def stop(ctx: Ctx, id: IdOrHere = ".") -> None:
    """Stop an app

    The app gets SIGTERM, and is killed if it still runs after ten seconds. The LLM server keeps running while
    other apps need it.

    Examples:
    svc app stop alice/notes
    """
    from svc.flows.apps.control import stop as stop_app

    apps = apps_of(ctx)
    app = apps.find(id, ctx.obj.folder)
    before = stop_app(apps, app)
    what = f"Stopped {app.id}" if before is not None else f"{app.id} does not run"
    ctx.out.done(what, state_of(apps, app), STATE, AppState, value=app.id)


@answers(STATE, AppState)
def restart(ctx: Ctx, id: IdOrHere = ".") -> None:
    """Stop an app and start it again, in the background

    Examples:
    svc app restart alice/notes
    """
    from svc.flows.apps.control import stop as stop_app

    apps = apps_of(ctx)
    app = apps.find(id, ctx.obj.folder)
    require_allowed(ctx, apps, app)
    stop_app(apps, app)
    start_in_background(ctx, apps, app)


@answers((Column("url", kind="name"),))
def open_app(ctx: Ctx, id: IdOrHere = ".") -> None:
    """Open the page of an app that runs

    The page is the address that .svc.yaml states as `ready` under `launch`. If there is no browser, the
    address is printed.

    Examples:
    svc app open alice/notes
    """
    apps = apps_of(ctx)
    app = apps.find(id, ctx.obj.folder)
    page = launch_of(app, manifest_of(app)).page
    if page is None:
        raise UsageError(f"{app.id} has no page: ready: in its launch: names no http and no port")
    if state_of(apps, app).state != "running":
        raise UsageError(f"{app.id} does not run, so its page does not answer; launch it first")
    if ctx.out.format.as_data:
        ctx.out.record({"url": page}, (Column("url", kind="name"),))
    else:
        open_page(ctx.out, page)


def require_allowed(ctx: Ctx, apps: Apps, app: App) -> None:
    """Show the command of an app and ask whether to run it, unless the user has allowed it before. Raises
    ConfirmationNeeded if nobody can be asked, Interrupted if the user refuses, and the errors of reading the
    app's `.svc.yaml`."""
    from svc.flows.apps.needs import needs_of

    manifest = manifest_of(app)
    wanted_launch = launch_of(app, manifest)
    needs_of(manifest)
    if apps.is_allowed(app, wanted_launch) and is_own(app):
        return
    ctx.out.note(f"{app.id} in {terminal_safe(app.folder)} would run: {command_line(wanted_launch)}")
    for name, value in wanted_launch.env:
        ctx.out.note(f"with {name}={terminal_safe(value)}")
    ctx.confirm(f"Launching {app.id} runs its program, which can do what you can")
    apps.allow(app, wanted_launch)


def command_line(launch: Launch) -> str:
    """Return the command of an app as a person would type it. It is always a single line. Further lines could
    imitate the question whether to run the app."""
    return terminal_safe(shlex.join(launch.command))


def start_in_background(ctx: Ctx, apps: Apps, app: App) -> None:
    """Start an app and wait until it is ready. Ctrl-C ends only the waiting, and the app goes on starting."""
    from svc.flows.apps import control

    _wait_until_started(ctx, apps, app, control.start(apps, app, ctx.obj.environment))


def _wait_until_started(ctx: Ctx, apps: Apps, app: App, process: subprocess.Popen[bytes] | None) -> None:
    """Wait until an app is ready, and print its state. `process` is the process that starts and supervises
    the app, or None if another command started it. Raises AppFailed."""
    from svc.flows.apps import control

    report = report_to(ctx.out.meter)

    def over(state: AppState) -> bool:
        if state.pulled is not None:
            report(*state.pulled)
        return state.state not in ("starting", "pulling")

    state = control.wait(apps, app, process, over)
    for note in state.notes:
        ctx.out.note(note)
    if state.state in ("failed", "stopped"):
        raise AppFailed(state.detail or f"{app.id} was stopped while it started")
    if state.state == "ended":
        ctx.out.done(f"{app.id} ended with {state.code}", state, STATE, AppState, value=app.id)
        if state.code:
            ctx.exit(EXIT_FAILED)
        return
    if process is None:
        sentence = f"{app.id} runs already (process {state.pid})"
        ctx.out.done(sentence, state, STATE, AppState, value=app.id)
        return
    where = f", at {state.page}" if state.page else ""
    model = f", with {state.model}" if state.model else ""
    sentence = f"{app.id} runs{where}{model} (process {state.pid})"
    ctx.out.done(sentence, state, STATE, AppState, value=app.id)


def report_to(meter: Meter) -> Callable[[int, int], None]:
    """Return a function that shows the progress of a pull. It is called with (received bytes, total bytes).
    When all bytes are received, the function clears the progress line, because the app then writes to the
    same terminal."""

    def report(completed: int, total: int) -> None:
        meter("pulling", completed >> 20, total >> 20, completed)
        if completed == total:
            meter.clear()

    return report
