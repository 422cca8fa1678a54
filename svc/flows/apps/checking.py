"""Checks whether an app could be launched on this machine."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from pathlib import Path

from localstore.core.errors import Invalid, UsageError
from localstore.core.launch import Launch
from localstore.core.paths import terminal_safe
from localstore.models import port as ports
from localstore.models.errors import ModelMissing
from localstore.models.names import ModelName
from localstore.models.place import llm_home
from localstore.models.store import Models
from svc.flows.apps.needs import Needs, needs_of
from svc.flows.apps.place import App, Apps, launch_of, manifest_of
from svc.flows.apps.ready import port_of_ready
from svc.flows.apps.state import state_of
from svc.flows.llm import hardware, memory, server
from svc.flows.llm.port import port_of

Row = dict[str, str]
ANSWERS = {
    "embedded": "svc's own answers",
    "ollama": "the installed ollama answers, which svc runs",
    "adopted": "a server answers that svc did not start",
}


def check_app(apps: Apps, app: App, environment: Mapping[str, str]) -> list[Row]:
    """Check whether an app could be launched. Returns a row for each requirement of the app. The state of a
    row is `ok`, `missing` (launching would fetch it), or `bad` (the app cannot be launched). Raises NoLaunch
    for a folder without an app."""
    try:
        manifest = manifest_of(app)
        launch, needs = launch_of(app, manifest), needs_of(manifest)
    except (Invalid, UsageError) as error:
        return [_row("manifest", "bad", error.detail)]
    allowed = apps.is_allowed(app, launch)
    rows = [
        _row("manifest", "ok", "its launch can be read"),
        _row("allowed", "ok" if allowed else "missing", "by you" if allowed else "you are asked once"),
        _program(app, launch, environment),
        *_ready(apps, app, launch),
    ]
    if needs.server:
        rows += _server(app, needs, environment)
    return rows


def _row(check: str, state: str, detail: str) -> Row:
    return {"check": check, "state": state, "detail": terminal_safe(detail)}


def _program(app: App, launch: Launch, environment: Mapping[str, str]) -> Row:
    word = launch.command[0]
    if "/" in word:
        file = Path(app.folder) / word
        fits = file.is_file() and os.access(file, os.X_OK)
        return _row("program", "ok" if fits else "bad", str(file) if fits else f"{file} cannot be executed")
    path = shutil.which(word, path=environment.get("PATH"))
    return _row("program", "ok" if path else "bad", path or f"{word} is not on PATH")


def _ready(apps: Apps, app: App, launch: Launch) -> list[Row]:
    port = port_of_ready(launch.ready)
    if port is None:
        return []
    if state_of(apps, app).supervisor is not None:
        return [_row("port", "ok", f"{port}: the app runs")]
    try:
        ports.bind(port).close()
    except OSError:
        return [_row("port", "bad", f"{port} is held by {ports.holder(port)}")]
    return [_row("port", "ok", f"{port} is free")]


def _server(app: App, needs: Needs, environment: Mapping[str, str]) -> list[Row]:
    number = port_of(None, Path(app.folder), environment)
    status = server.status(number, environment)
    rows = []
    if status.holder:
        rows.append(_row("server", "bad", f"port {number} is held by {status.holder}"))
    elif status.kind != "none":
        rows.append(_row("server", "ok", f"port {number}: {ANSWERS.get(status.kind, status.kind)}"))
    else:
        engine = hardware.engine()
        works = engine.works or shutil.which("ollama", path=environment.get("PATH")) is not None
        rows.append(
            _row("server", "ok" if works else "bad", f"port {number} is free" if works else engine.why)
        )
    models = Models(llm_home(environment))
    for position, name in enumerate(needs.models):
        if position == 0 and needs.preferred is not None:
            detail = f"{name.short} is used if {needs.preferred.short} cannot be pulled"
            rows.append(_row("model", "ok", detail))
        else:
            rows.append(_model(models, name, "bad"))
    if needs.preferred is not None:
        rows.append(_model(models, needs.preferred, "missing"))
    return rows


def _model(models: Models, name: ModelName, unfit: str) -> Row:
    try:
        installed = models.find(name)
    except ModelMissing:
        return _row("model", "missing", f"{name.short} is pulled at the launch")
    free, need = memory.available(), memory.smallest_need(installed)
    if free is not None and need > free:
        return _row("model", unfit, f"{name.short} needs {need:,} bytes of memory, and {free:,} are free")
    return _row("model", "ok", f"{name.short} is here")
