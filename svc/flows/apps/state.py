"""The current state of an app, and of the process that supervises it."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import msgspec

from localstore.folder.lock import living_holder
from localstore.models import store
from svc.flows.apps.place import LOCK, STATE, App, Apps

Phase = Literal["stopped", "starting", "pulling", "running", "ended", "failed"]


class AppState(msgspec.Struct, kw_only=True):
    """The state of an app.

    `state` is `stopped` if the app was never launched or was stopped, or if its supervisor was killed. Until
    the app is ready, the state is `starting`, or `pulling` while a model is pulled. Then it is `running`. It
    is `ended` if the app ended by itself, with the exit code `code`, and `failed` for the reason `detail`.

    `pid` is the process id of the app. `began` is the start time of that process, because a later process may
    have the same id. `notes` are messages of the supervisor, such as the chosen model. `pulled` is (bytes
    received, total bytes) of a model that is being pulled."""

    id: str
    state: Phase = "stopped"
    pid: int | None = None
    supervisor: int | None = None
    model: str | None = None
    llm: str | None = None
    page: str | None = None
    since_at: str | None = None
    code: int | None = None
    detail: str | None = None
    folder: str = ""
    installed: bool = False
    notes: list[str] = []
    pulled: tuple[int, int] | None = None
    began: int | None = None


def write(apps: Apps, state: AppState) -> None:
    store.write(apps.folder(state.id) / STATE, msgspec.json.encode(state))


def read_recorded(apps: Apps, app: App) -> AppState | None:
    """Return the last state that the app's supervisor stored; None if there is none."""
    try:
        return msgspec.json.decode((apps.folder(app.id) / STATE).read_bytes(), type=AppState)
    except (OSError, msgspec.MsgspecError):
        return None


def state_of(apps: Apps, app: App) -> AppState:
    """Return the current state of an app. This is the stored state, unless it is out of date. It is out of
    date if the supervisor was killed, or if a new supervisor has not stored a state yet."""
    state = read_recorded(apps, app) or AppState(id=app.id)
    state.id, state.folder, state.installed = app.id, app.folder, app.installed
    supervisor = living_holder(apps.folder(app.id) / LOCK)
    if supervisor is None and state.state in ("starting", "pulling", "running"):
        state.state, state.detail = "stopped", "its supervisor was killed"
    if supervisor is not None and state.supervisor != supervisor:
        state = AppState(id=app.id, state="starting", folder=app.folder, installed=app.installed)
    state.supervisor = supervisor
    if supervisor is None:
        state.pid = None
    return state


def began(pid: int) -> int | None:
    """Return the start time of a process, in clock ticks since the system started. None if the process has
    ended, or if the system does not report the time."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text("ascii", "replace")
        return int(text.rpartition(")")[2].split()[19])
    except (OSError, ValueError, IndexError):
        return None
