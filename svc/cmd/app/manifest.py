"""`svc app manifest|check`: shows an app's manifest (`.svc.yaml`), and checks what the app needs but this
machine lacks."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import msgspec
import typer

from localstore.core.errors import ClientError
from svc.cmd.app.launch import apps_of, command_line
from svc.cmd.frame.context import Ctx
from svc.console import Column, answers

CHECKS = (Column("check"), Column("state", kind="state"), Column("detail"))
SHOWN = (
    Column("id", kind="name"),
    Column("folder"),
    Column("kind"),
    Column("name"),
    Column("command", kind="line"),
    Column("env"),
    Column("ready"),
    Column("models"),
    Column("ollama_tag"),
    Column("port"),
    Column("allowed"),
)
Place = Annotated[str, typer.Argument(metavar="[ID|FOLDER]", help="The app, or its folder; else this folder")]


class _CannotLaunch(ClientError):
    """Raised if something that the app needs is not installed."""


@answers(SHOWN)
def manifest(ctx: Ctx, id: Place = ".") -> None:
    """Show what .svc.yaml of an app says

    Shows its command, the environment, the condition for being ready, the models, and the port of the LLM
    server. ALLOWED shows whether you have allowed this command.

    Examples:
    svc app manifest
    svc app manifest alice/notes --json command,models
    """
    from svc.flows.apps.place import launch_of, manifest_of
    from svc.flows.llm.port import port_of

    apps = apps_of(ctx)
    app = apps.find(id, ctx.obj.folder)
    said_by = manifest_of(app)
    launch = launch_of(app, said_by)
    record: dict[str, Any] = {
        "id": app.id,
        "folder": app.folder,
        "kind": said_by.kind,
        "name": said_by.name,
        "command": list(launch.command) if ctx.out.format.as_data else command_line(launch),
        "env": [f"{name}={value}" for name, value in launch.env],
        "ready": msgspec.to_builtins(launch.ready) if launch.ready is not None else None,
        "models": list(said_by.models),
        "ollama_tag": said_by.ollama_tag,
        "port": said_by.ollama_port_override or port_of(None, Path(app.folder), ctx.obj.environment),
        "allowed": apps.is_allowed(app, launch),
    }
    ctx.out.record(record, SHOWN)


@answers(CHECKS)
def check(ctx: Ctx, id: Place = ".") -> None:
    """Check whether an app could be launched here

    Checks its manifest, its program, the port that it opens when it is ready, the LLM server's port, and for
    each model whether it is installed and fits into memory. The exit code is 1 if the app could not be
    launched.

    Examples:
    svc app check
    svc app check alice/notes --json check,state,detail
    """
    from svc.flows.apps.checking import check_app

    apps = apps_of(ctx)
    rows = check_app(apps, apps.find(id, ctx.obj.folder), ctx.obj.environment)
    ctx.out.rows(rows, CHECKS)
    bad = next((row for row in rows if row["state"] == "bad"), None)
    if bad is not None:
        raise _CannotLaunch(f"the app cannot be launched: {bad['detail']}")
