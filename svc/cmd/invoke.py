"""`svc invoke`: sends one command to the agent's socket, as programs do."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import msgspec
import typer

from localstore.agent.talk import AgentSilent, ApiResponse
from localstore.core.errors import EXIT_FAILED, EXIT_OK, ClientError, UsageError
from svc.agent.start import start
from svc.cmd.frame.context import Ctx
from svc.console import Column, answers

LIST = (Column("name"), Column("category"), Column("summary", kind="line"), Column("args", kind="line"))
WRAPPER = tuple(map(Column, ("success", "data", "error")))


@answers((*WRAPPER, *LIST), table=LIST)
def invoke(
    ctx: Ctx,
    command: Annotated[str, typer.Argument(metavar="[COMMAND]", help="Such as sync_status")] = "",
    args: Annotated[str, typer.Option("--args", metavar="JSON", help="Its arguments, as a JSON object")] = "",
    list_: Annotated[bool, typer.Option("--list", help="List the commands, with their arguments")] = False,
) -> None:
    """Call a command of the agent, as programs do

    The answer is JSON: success, and data or an error with its code and message. There are commands for sync,
    sign-in, this machine and its images. Every command of svc can be called, too, with its words joined, such
    as issue_list. The agent is started if none runs, and runs the command in this folder.

    Examples:
    svc invoke sync_status
    svc invoke issue_list --args '{"state": "closed", "limit": 5}'
    svc invoke --list
    """
    if list_ == bool(command):
        raise UsageError("name a command, or give --list")
    if list_:
        ctx.out.rows(_list_commands(), LIST)
        return
    response = _invoke_command(ctx, command, _object(args))
    wrapped = msgspec.to_builtins(response)
    if ctx.out.format.as_data:
        ctx.out.record(wrapped, WRAPPER)
    else:
        ctx.out.data(wrapped)
    ctx.exit(EXIT_OK if response.success else EXIT_FAILED)


def _object(text: str) -> dict[str, Any]:
    try:
        return msgspec.json.decode(text or "{}", type=dict[str, Any])
    except (msgspec.MsgspecError, RecursionError) as error:
        raise UsageError(f"--args is not a JSON object: {error}") from None


def _invoke_command(ctx: Ctx, command: str, args: dict[str, Any]) -> ApiResponse[Any]:
    server = ctx.obj.given.get("server") or ctx.obj.environment.get("SVC_SERVER")
    repo = ctx.obj.given.get("repo") or ctx.obj.environment.get("SVC_REPO")
    if repo and "repo" not in args:
        args = {**args, "repo": repo}
    with start(ctx.obj.home) as agent:
        try:
            return agent.invoke(command, args, str(Path(ctx.obj.folder).resolve()), server)
        except AgentSilent:
            raise ClientError(
                "the agent of this machine does not answer; see agent.log in SVC_HOME"
            ) from None


def _list_commands() -> Iterator[dict[str, str]]:
    from svc.agent.invoke import bus  # noqa: F401 - declares commands
    from svc.agent.invoke.table import CATEGORIES, COMMANDS, SVC_COMMANDS
    from svc.cmd.frame import table
    from svc.cmd.frame.invoked import GLOBAL, parameters, system_commands

    rows = {
        name: (command.category, command.summary, command.args.__struct_fields__)
        for name, command in COMMANDS.items()
    }
    named = {**SVC_COMMANDS, **{name: ("System", path) for name, path in system_commands().items()}}
    for name, (category, path) in named.items():
        rows[name] = (category, table.COMMANDS[path].summary, (*parameters(path), *GLOBAL))
    for name, (category, summary, args) in sorted(
        rows.items(), key=lambda row: (CATEGORIES.index(row[1][0]), row[0])
    ):
        yield {"name": name, "category": category, "summary": summary, "args": " ".join(args)}
