"""The command `svc llm doctor`."""

from __future__ import annotations

import shutil

from localstore.core.errors import ClientError
from localstore.models.place import llm_home
from svc.cmd.frame.context import Ctx
from svc.cmd.llm.models import models_of
from svc.cmd.llm.server import Port, chosen_port
from svc.console import Column, answers
from svc.console.table import size

CHECKS = (Column("check"), Column("state", kind="state"), Column("detail"))


class _CannotGenerate(ClientError):
    """Raised if nothing on this machine can generate text."""


@answers(CHECKS)
def doctor(ctx: Ctx, port: Port = None) -> None:
    """Check what this machine can generate with

    Checks the engine and the processor, graphics and neural processors, memory, disk, an installed ollama,
    the server, and for each model whether it fits into memory. The exit code is 1 if nothing on this machine
    can generate text.

    Examples:
    svc llm doctor
    svc llm doctor --json check,state,detail
    """
    from svc.flows.llm import hardware, memory, server

    rows: list[dict[str, str]] = []

    def row(check: str, state: str, detail: str) -> None:
        rows.append({"check": check, "state": state, "detail": detail})

    engine = hardware.engine()
    row(
        "engine",
        "ok" if engine.works else "missing",
        f"xllamacpp {engine.version}" if engine.works else engine.why,
    )
    missing = hardware.find_lacking()
    row(
        "processor",
        "bad" if missing else "ok",
        f"lacks {', '.join(missing)}" if missing else "has what is needed",
    )
    for device in hardware.gpus(engine.devices):
        row(
            "gpu",
            "ok" if device.usable else "unused",
            f"{device.name}: {device.why or 'the engine can use it'}",
        )
    for device in hardware.npus():
        row("npu", "unused", f"{device.name}: {device.why}")
    free = memory.available()
    row("memory", "ok", f"{size(free)} are free" if free is not None else "the system does not tell")
    home = llm_home(ctx.obj.environment)
    place = next(folder for folder in (home, *home.parents) if folder.exists())
    row("disk", "ok", f"{size(shutil.disk_usage(place).free)} are free for {home}")
    ollama = shutil.which("ollama", path=ctx.obj.environment.get("PATH"))
    row("ollama", "ok" if ollama else "none", ollama or "not installed; svc's own server is used")
    status = server.status(chosen_port(ctx, port), ctx.obj.environment)
    detail = f"held by {status.holder}; use --port or ollama_port_override" if status.holder else status.kind
    row("server", "bad" if status.holder else "ok", f"port {status.port}: {detail}")
    for model in models_of(ctx).all():
        need = memory.smallest_need(model)
        fits = free is None or need <= free
        row(
            "model",
            "ok" if fits else "bad",
            f"{model.name} needs {size(need)}" + ("" if fits else ", more than is free"),
        )
    ctx.out.rows(rows, CHECKS)
    if not engine.works and not ollama and status.kind not in ("embedded", "ollama", "adopted"):
        raise _CannotGenerate(f"nothing here can generate: {engine.why}")
