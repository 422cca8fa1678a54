"""Reads the state of this machine: the local LLM server, models, downloads of models (pulls) and apps. All
calls block.

    reading = Reading(machine.root, machine.environment, folder)
    overview = reading.read()

The LLM server is asked only for its loaded models. Such a request does not count as use, so a server that
nobody needs still ends while somebody looks at it."""

from __future__ import annotations

import shlex
import shutil
import time
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from localstore.core.errors import SvcError
from localstore.core.names import MANIFEST
from localstore.core.paths import terminal_safe
from localstore.models import leases, pulls, server
from localstore.models.errors import ServerFailed
from localstore.models.names import ModelName
from localstore.models.place import llm_home
from localstore.models.store import Installed, Models
from svc.flows.apps.needs import needs_of
from svc.flows.apps.place import LOG, App, Apps, launch_of, manifest_of
from svc.flows.apps.state import AppState, state_of
from svc.flows.llm import hardware, memory
from svc.flows.llm.port import port_of
from svc.flows.llm.server import folder_of
from svc.flows.llm.server import status as status_of
from svc.flows.llm.status import ServerStatus
from svc.flows.llm.talk import Server
from svc.flows.models import background

ANSWER_SECONDS = 3.0  # that the server has to answer
HELD_SECONDS = 10.0  # between two looks at a program that has the port and is no LLM server
RUNNING = ("starting", "pulling", "running")  # states of an app whose supervisor lives


class Loaded(NamedTuple):
    """A model in the memory of the LLM server. `size`: its size in bytes. `context`: the size of its context.
    `until`: when it is unloaded, as an RFC 3339 time."""

    size: int
    context: int
    until: str


class Pull(NamedTuple):
    """A pull, which is the download of a model. It is either running in the process `pid`, or it has failed
    for the reason `failure`. `known`: how many bytes need not be downloaded, because this machine has them.
    `lock`: the file that the process locks. It is None for a pull in the background."""

    name: str
    completed: int = 0
    total: int = 0
    pid: int = 0
    lock: Path | None = None
    failure: str = ""
    known: int = 0


class Model(NamedTuple):
    """An installed model. `need`: the fewest bytes of memory with which it can be loaded. `kind`: its
    quantisation, or `file` if it was added from a file. `architecture`: its architecture and number of
    weights."""

    name: ModelName
    size: int
    need: int
    kind: str
    architecture: str = ""


class AppRow(NamedTuple):
    """An app. `missing`: the names of models that it needs and that are not installed. `need`: the bytes of
    memory for a model that does not fit, 0 if all models fit. `problem`: why the app cannot be launched.
    `command`: what it runs, in shell notation."""

    state: AppState
    missing: tuple[str, ...] = ()
    need: int = 0
    problem: str = ""
    command: str = ""


class MachineState(NamedTuple):
    """The state of this machine. `loaded`: the models in memory, by their full name. `total` and `free`:
    bytes of memory. They are None if the system does not report them."""

    status: ServerStatus
    loaded: dict[str, Loaded]
    models: list[Model]
    pulls: list[Pull]
    apps: list[AppRow]
    total: int | None
    free: int | None


class Reading:
    """Reads the state of this machine as often as it is asked to. `folder`: a folder whose `.svc.yaml` may
    name the port of the LLM server."""

    def __init__(self, home: Path, environment: Mapping[str, str], folder: Path) -> None:
        self._home, self._environment = home, environment
        self.models = Models(llm_home(environment))
        self.apps = Apps(home)
        self.port = port_of(None, folder, environment)
        self._held: tuple[float, ServerStatus] | None = None
        self._manifests: dict[str, tuple[object, tuple[ModelName, ...], str, str]] = {}

    def server_log(self) -> Path:
        """Returns the path of the LLM server's log."""
        return folder_of(self.port, self._environment) / server.LOG

    def app_log(self, id: str) -> Path:
        """Returns the path of an app's log."""
        return self.apps.folder(id) / LOG

    def read(self) -> MachineState:
        """Read the whole state of the machine. Raises OSError and SvcError."""
        status, loaded = self._server()
        installed = self.models.all()
        free = memory.available()
        by_name = {model.name: model for model in installed}
        return MachineState(
            status,
            loaded,
            [_model(model) for model in installed],
            pulls_of(self._home, self.models),
            [self._app(app, by_name, loaded, free) for app in self.apps.all()],
            memory.total(),
            free,
        )

    def _server(self) -> tuple[ServerStatus, dict[str, Loaded]]:
        """Returns the status of the LLM server on the port, and its loaded models by name."""
        folder = folder_of(self.port, self._environment)
        keeper = server.running(folder)
        if keeper is None:
            status = self._not_kept()
            return status, loaded_by(self.port) or {} if status.kind == "adopted" else {}
        status = ServerStatus(
            port=self.port, url=f"http://127.0.0.1:{self.port}", kind=keeper.kind, pid=keeper.pid
        )
        status.leases, status.stays = leases.list_leases(folder), leases.stays(folder)
        loaded = loaded_by(self.port)
        if loaded is None:
            status.kind = "hung"
        return status, loaded or {}

    def _not_kept(self) -> ServerStatus:
        """Returns the status of a port on which svc did not start a server. If another program has the port
        and is no LLM server, it is asked at most once in HELD_SECONDS."""
        if self._held is not None and time.monotonic() - self._held[0] < HELD_SECONDS:
            return self._held[1]
        status = status_of(self.port, self._environment, ANSWER_SECONDS)
        self._held = (time.monotonic(), status) if status.kind == "held" else None
        return status

    def _app(
        self,
        app: App,
        installed: Mapping[ModelName, Installed],
        loaded: Mapping[str, Loaded],
        free: int | None,
    ) -> AppRow:
        state = state_of(self.apps, app)
        needs, problem, command = self._needs(app)
        if state.state in RUNNING:
            return AppRow(state, command=command)
        unloaded = [installed[name] for name in needs if name in installed and str(name) not in loaded]
        need = max(map(memory.smallest_need, unloaded), default=0)
        missing = tuple(name.short for name in needs if name not in installed)
        return AppRow(state, missing, need if free is not None and need > free else 0, problem, command)

    def _needs(self, app: App) -> tuple[tuple[ModelName, ...], str, str]:
        """Returns the models that an app needs, the reason why it cannot be launched, and its command. The
        app's manifest is read again only if it has changed."""
        try:
            info = (Path(app.folder) / MANIFEST).stat()
            version: object = (info.st_ino, info.st_mtime_ns, info.st_size)
        except OSError:
            version = None
        before = self._manifests.get(app.id)
        if before is not None and before[0] == version:
            return before[1:]
        names: tuple[ModelName, ...] = ()
        problem = command = ""
        try:
            manifest = manifest_of(app)
            names = tuple(needs_of(manifest).models)
            command = terminal_safe(shlex.join(launch_of(app, manifest).command))
        except SvcError as error:
            problem = error.detail
        self._manifests[app.id] = version, names, problem, command
        return names, problem, command


def loaded_by(port: int) -> dict[str, Loaded] | None:
    """Returns the models that the LLM server on a port has loaded, by name. Returns None if it does not
    answer."""
    try:
        rows = Server(port).get("/api/ps", ANSWER_SECONDS).get("models")
    except ServerFailed:
        return None
    named = [row for row in rows if isinstance(row, dict)] if isinstance(rows, list) else []
    return {
        str(row.get("name")): Loaded(
            _number(row.get("size")), _number(row.get("context_length")), str(row.get("expires_at") or "")
        )
        for row in named
    }


def pulls_of(home: Path, models: Models) -> list[Pull]:
    """Returns pulls (downloads of models): the running ones of all processes of the user, and the failed ones
    of this SVC_HOME."""
    by_name: dict[str, Pull] = {}
    for download in pulls.under_way(models):
        progress = download.progress
        name = progress.name or download.lock.stem[:16]
        by_name[name] = Pull(
            name, progress.completed, progress.total, download.pid, download.lock, known=progress.known
        )
    for state in background.downloads(home, models):
        before = by_name.get(state.name)
        if state.pid is None and before is None:
            by_name[state.name] = Pull(state.name, failure=state.detail or "it failed")
        elif state.pid is not None:
            # Its own word for one file is older than what is beside the blob.
            newer = before if before is not None else state
            by_name[state.name] = Pull(state.name, newer.completed, newer.total, state.pid, known=newer.known)
    return list(by_name.values())


def percent(parts: Iterable[Pull]) -> int | None:
    """Returns how far these pulls are together, in percent. Returns None if none of them reports its size."""
    going = [pull for pull in parts if pull.total]
    whole = sum(pull.total for pull in going)
    return 100 * sum(pull.completed for pull in going) // whole if whole else None


def engine_words(environment: Mapping[str, str]) -> tuple[str, str]:
    """Returns the name of the device that computes models (a graphics card or the CPU), and the reason why
    models cannot be used here. One of the two is "". Both are "" if only an installed ollama can compute
    models. Finding out loads the engine in a separate process, which takes a second or two."""
    engine = hardware.engine()
    if engine.works:
        names = [str(device.get("name") or "GPU") for device in engine.devices]
        return names[0] if names else "CPU only", ""
    if shutil.which("ollama", path=environment.get("PATH")):
        return "", ""
    return "", engine.why


def brief(home: Path, environment: Mapping[str, str], folder: Path) -> str:
    """Returns a line about models for the first screen, such as `LLM 11434 · 1 loaded · pulling 41 %`.
    Returns "" if svc runs no server here and nothing is being pulled."""
    words = []
    with suppress(OSError, SvcError):
        port = port_of(None, folder, environment)
        if server.running(folder_of(port, environment)) is not None:
            loaded = loaded_by(port)
            words = [f"LLM {port}", "does not answer" if loaded is None else f"{len(loaded)} loaded"]
        going = [pull for pull in pulls_of(home, Models(llm_home(environment))) if not pull.failure]
        if going:
            share = percent(going)
            words += ["pulling" if share is None else f"pulling {share} %"]
    return " · ".join(words)


def _model(installed: Installed) -> Model:
    is_file = installed.about.how in ("reflink", "link", "copy") and installed.record.source is None
    kind = "file" if is_file else installed.about.header.quantisation
    architecture = f"{installed.about.header.architecture} with {installed.parameters:,} weights"
    return Model(installed.name, installed.size, memory.smallest_need(installed), kind, architecture)


def _number(value: Any) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else 0
