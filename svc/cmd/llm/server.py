"""`svc llm serve` and related commands: the local LLM server."""

from __future__ import annotations

from typing import Annotated

import typer

from localstore.models.names import parse
from svc.cmd.frame.context import Ctx
from svc.cmd.frame.logs import Follow, Lines, print_log
from svc.console import Column, answers, answers_text
from svc.flows.llm.port import port_of
from svc.flows.llm.status import ServerStatus

STATUS = (
    Column("port"),
    Column("url"),
    Column("kind"),
    Column("pid"),
    Column("version"),
    Column("loaded"),
    Column("leases"),
    Column("stays"),
    Column("svc_home"),
    Column("models"),
    Column("holder"),
)
LOADED = (
    Column("name", kind="name"),
    Column("size", kind="size"),
    Column("context"),
    Column("until_at", kind="time"),
)

Port = Annotated[
    int | None,
    typer.Option(
        "--port", metavar="PORT", help="Instead of ollama_port_override of .svc.yaml, SVC_LLM_PORT, 11434"
    ),
]


def chosen_port(ctx: Ctx, option: int | None) -> int:
    return port_of(option, ctx.obj.folder, ctx.obj.environment)


@answers_text
def serve(ctx: Ctx, port: Port = None) -> None:
    """Run the local LLM server in the foreground

    It answers the API of Ollama and /v1 of OpenAI on 127.0.0.1 until Ctrl-C, and prints its log. Everybody
    who can connect to a port of this machine can use it. Generating text needs the extra llm: pip install
    'svc[llm]'.

    Examples:
    svc llm serve
    svc llm serve --port 11500
    """
    from svc.flows.llm import server

    server.serve(chosen_port(ctx, port), ctx.obj.environment, ctx.obj.home.root)


@answers(STATUS, ServerStatus)
def start(ctx: Ctx, port: Port = None) -> None:
    """Start the local LLM server, and leave it running

    If an LLM server already answers on the port, it is used. Otherwise an installed ollama is started, or
    else svc's own server. It runs until svc llm stop. If another program uses the port, the command fails and
    does not try another port.

    Examples:
    svc llm start
    svc llm start --port 11500
    """
    from svc.flows.llm import server

    number = chosen_port(ctx, port)
    environment, home = ctx.obj.environment, ctx.obj.home.root
    server_status, new = server.start(number, environment, home, stays=True, say=ctx.out.note)
    what = "Started the local LLM server" if new else "The local LLM server runs already"
    ctx.out.done(
        f"{what}: {server_status.url} ({_kind(server_status)})",
        server_status,
        STATUS,
        ServerStatus,
        value=server_status.url,
    )


@answers(STATUS, ServerStatus)
def stop(
    ctx: Ctx,
    model: Annotated[
        str, typer.Argument(metavar="[MODEL]", help="Unload this model; the server goes on")
    ] = "",
    port: Port = None,
) -> None:
    """Stop the local LLM server, or unload one model

    A model that is answering is unloaded after its answer. A server that svc did not start is never stopped.

    Examples:
    svc llm stop
    svc llm stop tiny
    """
    from svc.flows.llm import server
    from svc.flows.llm.talk import Server

    number, environment = chosen_port(ctx, port), ctx.obj.environment
    if model:
        name = parse(model)
        Server(number).post("/api/generate", {"model": str(name), "keep_alive": 0, "stream": False})
        server_status = server.status(number, environment)
        ctx.out.done(f"Unloaded {name.short}", server_status, STATUS, ServerStatus, value=str(name))
        return
    ended = server.stop(number, environment)
    if ended is None:
        server_status = server.status(number, environment)
        ctx.out.done(f"No local LLM server runs on port {number}", server_status, STATUS, ServerStatus)
        return
    sentence = f"Stopped the local LLM server of port {number} (process {ended.pid})"
    ctx.out.done(sentence, ended, STATUS, ServerStatus, value=ended.url)


@answers(STATUS, ServerStatus)
def status(ctx: Ctx, port: Port = None) -> None:
    """Show the local LLM server of this machine

    KIND is embedded (svc's own server), ollama (an installed ollama that svc runs), adopted (a server that
    svc did not start), none, held (another program uses the port), or hung (the server does not answer).

    Examples:
    svc llm status
    svc llm status --json kind,pid,leases
    """
    from svc.flows.llm import server

    ctx.out.record(server.status(chosen_port(ctx, port), ctx.obj.environment), STATUS, ServerStatus)


@answers(LOADED)
def list_loaded(ctx: Ctx, port: Port = None) -> None:
    """List the models that are loaded

    Examples:
    svc llm ps
    svc llm ps --json name,context
    """
    from svc.flows.llm.server import require_no_hung_server
    from svc.flows.llm.talk import Server, probe

    number = chosen_port(ctx, port)
    answer = probe(number)
    if answer != "llm":
        require_no_hung_server(number, ctx.obj.environment)
    models = Server(number).get("/api/ps").get("models") or [] if answer == "llm" else []
    rows = [
        {
            "name": model.get("name"),
            "size": model.get("size"),
            "context": model.get("context_length"),
            "until_at": model.get("expires_at"),
        }
        for model in models
        if isinstance(model, dict)
    ]
    ctx.out.rows(rows, LOADED, empty="no model is loaded; svc llm run MODEL loads one")


@answers_text
def logs(
    ctx: Ctx,
    lines: Lines = 100,
    follow: Follow = False,
    port: Port = None,
) -> None:
    """Print the log of the local LLM server

    Examples:
    svc llm logs
    svc llm logs -n 20 --follow
    """
    from localstore.models.server import LOG
    from svc.flows.llm.server import folder_of

    file = folder_of(chosen_port(ctx, port), ctx.obj.environment) / LOG
    print_log(ctx, file, lines, follow, "the log is empty; svc llm start starts the server")


def _kind(server_status: ServerStatus) -> str:
    words = {"embedded": "svc's own", "ollama": "the installed ollama", "adopted": "not started by svc"}
    process = f", process {server_status.pid}" if server_status.pid else ""
    return f"{words.get(server_status.kind, server_status.kind)}{process}"
