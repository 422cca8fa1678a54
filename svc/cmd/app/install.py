"""The commands `svc app install|update|uninstall`."""

from __future__ import annotations

from typing import Annotated

import typer

from localstore.core.errors import UsageError
from localstore.core.paths import terminal_safe
from localstore.models.errors import AppMissing
from svc.cmd.app.launch import Id, apps_of
from svc.cmd.frame.context import Ctx
from svc.cmd.frame.working_copy import note_conflicts, note_skipped
from svc.console import Column, answers
from svc.flows.apps.place import App, launch_of, manifest_of
from svc.flows.apps.state import state_of

INSTALLED = (
    Column("id", kind="name"),
    Column("server"),
    Column("folder"),
    Column("installed"),
)
UPDATED = (Column("id", kind="name"), Column("seal", kind="id"), Column("changed"), Column("asks"))


@answers(INSTALLED, App)
def install(
    ctx: Ctx,
    repository: Annotated[str, typer.Argument(metavar="[OWNER/NAME]", help="Its repository; or -R")] = "",
) -> None:
    """Install an app from its repository

    The newest seal is verified and written below SVC_HOME. Nothing is run: svc app launch shows the command
    and asks first. A repository whose .svc.yaml has no member `launch` is not an app.

    Examples:
    svc app install alice/notes
    svc app install node.example/alice/notes
    """
    from svc.flows.apps.installing import install as install_app

    run = ctx.obj
    run.set_repository(repository)
    if run.named_repo is None:
        raise UsageError("which app? give the OWNER/NAME of its repository")
    repo = ctx.readable_repo
    app, new = install_app(run, apps_of(ctx), repo)
    what = f"Installed {app.id}" if new else f"{app.id} is installed already"
    ctx.out.done(what, app, INSTALLED, App, value=app.id)


@answers(UPDATED)
def update(ctx: Ctx, id: Id) -> None:
    """Bring an installed app up to date

    Works like svc pull in the app's folder. If the app is running, the old version goes on until svc app
    restart. The column ASKS shows whether the app's command has changed. If so, the next launch asks for
    permission again.

    Examples:
    svc app update alice/notes
    """
    from svc.flows.apps.installing import update as update_app

    apps = apps_of(ctx)
    app = apps.find(id, ctx.obj.folder)
    if not app.installed:
        raise UsageError(f"{app.id} was not installed: its folder is your own to bring up to date")
    done = update_app(ctx.obj.environment, app, ctx.obj)
    note_skipped(ctx, done.skipped)
    note_conflicts(ctx, done.conflicts)
    asks = not apps.is_allowed(app, launch_of(app, manifest_of(app)))
    changed = len(done.changed)
    record = {"id": app.id, "seal": done.seal, "changed": changed, "asks": asks}
    state = state_of(apps, app)
    if changed and state.supervisor is not None:
        ctx.out.note(f"{app.id} runs as it was; svc app restart {app.id} starts the new one")
    ctx.out.done(f"Updated {app.id}: {changed} files changed", record, UPDATED, value=app.id)


@answers(INSTALLED, App)
def uninstall(ctx: Ctx, id: Id) -> None:
    """Remove an app from this machine

    The app is stopped first. The folder of an installed app is deleted with everything that the app wrote
    there. A folder of your own that was launched is not deleted. Models are not deleted either; svc llm rm
    removes them.

    Examples:
    svc app uninstall alice/notes --yes
    """
    from svc.flows.apps.control import stop
    from svc.flows.apps.installing import uninstall as uninstall_app

    apps = apps_of(ctx)
    app = apps.find(id, ctx.obj.folder)
    if app.id not in {recorded.id for recorded in apps.all()}:
        raise AppMissing(
            f"no app is recorded in {terminal_safe(app.folder)}, so there is nothing to uninstall"
        )
    what = f"its folder {terminal_safe(app.folder)}" if app.installed else "what svc knows of it"
    ctx.confirm(f"Uninstalling {app.id} removes {what}")
    stop(apps, app)
    uninstall_app(apps, app)
    ctx.out.done(f"Uninstalled {app.id}", app, INSTALLED, App, value=app.id)
