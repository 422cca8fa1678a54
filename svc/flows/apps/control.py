"""Starts and stops apps in the background, and waits for their state to change."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping

from localstore.core.paths import terminal_safe
from localstore.folder.lock import end_holder, how_to_end, living_holder
from localstore.models.errors import AppFailed
from svc import UTF8_NAMES
from svc.flows.apps.place import LOCK, App, Apps
from svc.flows.apps.state import AppState, read_recorded, state_of
from svc.flows.apps.supervise import end_left
from svc.flows.apps.supervisor import ALREADY

SUPERVISOR = "svc.flows.apps.supervisor"
STOP_SECONDS = 20.0
_LOOK = 0.05


def start(apps: Apps, app: App, environment: Mapping[str, str]) -> subprocess.Popen[bytes]:
    """Start a process that runs and supervises an app. Returns that process, which goes on running when this
    process ends."""
    home = apps.root.parent
    apps.record(app)
    words = apps.folder(app.id) / "start"
    with words.open("wb") as output:
        return subprocess.Popen(
            [sys.executable, *UTF8_NAMES, "-P", "-m", SUPERVISOR, app.id],
            cwd="/",
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            env={**environment, "SVC_HOME": str(home)},
            start_new_session=True,
        )


def wait(
    apps: Apps,
    app: App,
    process: subprocess.Popen[bytes] | None,
    over: Callable[[AppState], bool],
) -> AppState:
    """Wait until `over` returns True for the app's state, or until its supervisor (the process that runs the
    app) has ended. Returns the state. `process` is the supervisor, or None if another command started it.
    Raises AppFailed if the supervisor ended without recording a state."""
    while True:
        code = process.poll() if process is not None else ALREADY
        state = state_of(apps, app)
        if process is None or code == ALREADY:
            if over(state) or state.supervisor is None:
                return state
        elif state.supervisor == process.pid and over(state):
            return state
        elif code is not None:
            last_words = read_recorded(apps, app)
            if last_words is not None and last_words.supervisor == process.pid:
                return state
            text = (apps.folder(app.id) / "start").read_text("utf-8", "replace").strip().splitlines()
            last = terminal_safe(text[-1]) if text else f"its supervisor ended with {code}"
            raise AppFailed(f"{app.id} was not started: {last}")
        time.sleep(_LOOK)


def stop(apps: Apps, app: App) -> AppState | None:
    """End an app. Returns the state that it had before; None if it was not running. Raises AppFailed if it
    does not end."""
    lock = apps.folder(app.id) / LOCK
    state = state_of(apps, app)
    if living_holder(lock) is None:
        end_left(apps, app)
        return None
    if any(end_holder(lock, number, STOP_SECONDS) for number in (signal.SIGTERM, signal.SIGKILL)):
        end_left(apps, app)
        return state
    raise AppFailed(f"{app.id} does not end; {how_to_end(lock)}")
