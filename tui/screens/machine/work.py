"""The work that the screen "this machine" does with models and apps. All calls block, and most return a
sentence for the user."""

from __future__ import annotations

import shlex
import signal
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from localstore.core.errors import ClientError
from localstore.core.launch import Launch
from localstore.core.paths import terminal_safe
from localstore.folder.lock import end_holder
from localstore.models.errors import AppFailed, AppMissing
from localstore.models.names import ModelName, parse
from localstore.models.place import llm_home
from localstore.models.store import Models
from svc.flows.apps import control
from svc.flows.apps.needs import needs_of
from svc.flows.apps.place import App, Apps, is_own, launch_of, manifest_of
from svc.flows.apps.state import AppState, state_of
from svc.flows.models import background
from tui.machine import Machine
from tui.screens.machine.reading import RUNNING, Pull
from tui.web import DRIVER_VARIABLE

END_SECONDS = 20.0


class Offer(NamedTuple):
    """An app that the user can launch. `launch`: the instructions that its manifest contains now. `allowed`:
    the user has allowed exactly these instructions before."""

    app: App
    launch: Launch
    allowed: bool

    @property
    def command(self) -> str:
        """The app's command on one line, in shell notation."""
        return terminal_safe(shlex.join(self.launch.command))


def pull(machine: Machine, name: ModelName, server: str) -> str:
    """Start to download a model, in a process that goes on when the app ends. Returns "" or, if that failed,
    a sentence."""
    download = background.start(machine.root, name, _environment(machine), server)
    if download.state == "failed":
        return f"{name.short} was not pulled: {download.detail}"
    return ""


def cancel(machine: Machine, going: Pull) -> str:
    """End the process of a pull (download of a model). Returns a sentence for the user. Raises ClientError if
    the process does not end."""
    if going.lock is None:
        state = background.cancel(machine.root, parse(going.name), _models(machine))
        ended = state.state != "pulling"
    else:
        ended = end_holder(going.lock, signal.SIGTERM, END_SECONDS)
    if not ended:
        # 0 is every process of the terminal's group; one has no number if it began on a full disk.
        how = f"kill -9 {going.pid}" if going.pid else "its number is not known"
        raise ClientError(f"the pull of {going.name} does not end; end its process: {how}")
    return f"ended the pull of {going.name}; p goes on where it was"


def forget(machine: Machine, failed: Pull) -> str:
    """Remove a failed pull (download of a model) from the list of pulls. Returns a sentence for the user."""
    background.forget(machine.root, parse(failed.name))
    return f"forgot the pull of {failed.name}"


def find(machine: Machine, typed: str, base: Path) -> App:
    """Returns the app with the typed name or in the typed folder. `base`: the folder from which a relative
    path begins. Raises AppMissing and UsageError."""
    return Apps(machine.root).find(typed, base)


def find_recorded(machine: Machine, id: str) -> App:
    """Returns the app with exactly this id. Raises AppMissing if it is not on this machine any more."""
    for app in Apps(machine.root).all():
        if app.id == id:
            return app
    raise AppMissing(f"{id} is not on this machine any more")


def stop(machine: Machine, id: str) -> str:
    """Stop the app with exactly this id. Returns a sentence for the user. Raises AppMissing and AppFailed."""
    before = control.stop(Apps(machine.root), find_recorded(machine, id))
    return f"Stopped {id}" if before is not None else f"{id} does not run"


def prepare(machine: Machine, app: App) -> Offer:
    """Read the manifest of an app, for what is shown before the launch. Raises the errors of a faulty
    manifest."""
    apps = Apps(machine.root)
    manifest = manifest_of(app)
    launch_now = launch_of(app, manifest)
    needs_of(manifest)
    return Offer(app, launch_now, apps.is_allowed(app, launch_now) and is_own(app))


def launch(machine: Machine, offer: Offer, leaving: Callable[[], bool]) -> str:
    """Record that the user allows the app, and launch it. Waits until the app is ready, or has ended or
    failed, or until `leaving()` is true. Returns a sentence. Raises AppFailed."""
    apps, app = Apps(machine.root), offer.app
    if not offer.allowed:
        apps.allow(app, offer.launch)
    if state_of(apps, app).supervisor is not None:
        return f"{app.id} runs already"
    process = control.start(apps, app, _environment(machine))

    def over(state: AppState) -> bool:
        return state.state not in ("starting", "pulling") or leaving()

    state = control.wait(apps, app, process, over)
    if state.state in ("failed", "stopped"):
        raise AppFailed(state.detail or f"{app.id} was stopped while it started")
    if state.state == "ended":
        if state.code:
            raise AppFailed(f"{app.id} ended with {state.code}; enter shows its log")
        return f"{app.id} has ended"
    if state.state not in RUNNING:
        return ""
    notes = "; ".join(state.notes)
    return f"{app.id} runs" + (f", at {state.page}" if state.page else "") + (f"; {notes}" if notes else "")


def _models(machine: Machine) -> Models:
    return Models(llm_home(machine.environment))


def _environment(machine: Machine) -> dict[str, str]:
    """Returns the environment variables for processes that the app starts. They are the app's own, without
    the variable that makes the app draw in a page of a browser."""
    return {name: value for name, value in machine.environment.items() if name != DRIVER_VARIABLE}
