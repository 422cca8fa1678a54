"""Runs one invocation: checks its arguments, calls the command, and wraps its answer."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import msgspec

from localstore.agent.server import HungUp
from localstore.agent.talk import ApiResponse, Request
from localstore.core.errors import ClientError, SvcError, UsageError
from localstore.core.paths import PROSE, terminal_safe
from svc.agent.invoke import gallery, hardware, models, sync  # noqa: F401 - they declare commands
from svc.agent.invoke.programs import SVC
from svc.agent.invoke.table import ABSENT, COMMANDS, Host, Invocation

_NAME = re.compile(r"[a-z][a-z0-9_]{0,63}")
_wrapped = msgspec.json.Decoder(ApiResponse[Any])


class UnknownCommand(UsageError):
    """Raised if no command of `invoke` has the requested name."""

    code = "unknown_command"


class NotInThisVersion(ClientError):
    """Raised for a command that is planned for svc but missing in this version."""

    code = "not_in_this_version"


def invoke(host: Host, request: Request, hung_up: HungUp) -> ApiResponse[Any]:
    """Run the command that the request names, and return its response. An error is returned as a response,
    not raised."""
    try:
        folder = Path(request.folder) if request.folder else None
        if folder is not None and not (folder.is_absolute() and folder.is_dir()):
            raise UsageError("the folder of an invocation is the absolute path of one that exists")
        return _carry_out(request, Invocation(host, folder, request.server, hung_up))
    except SvcError as error:
        message = terminal_safe(error.detail or error.title, keep=PROSE)
        return ApiResponse.refuse(error.code, message)
    except OSError as error:
        return ApiResponse.refuse("disk_error", error.strerror or str(error))
    except Exception as error:  # a fault of ours must not end the conversation
        return ApiResponse.refuse("failed", f"something broke inside svc ({type(error).__name__}: {error})")


def _carry_out(request: Request, context: Invocation) -> ApiResponse[Any]:
    name = request.command
    if not _NAME.fullmatch(name):
        raise UnknownCommand(f"there is no command '{terminal_safe(name[:60])}'; see: svc invoke --list")
    if name in ABSENT:
        raise NotInThisVersion(f"{name} is not in this version of svc; svc invoke --list lists what is")
    command = COMMANDS.get(name)
    if command is None:
        body = {"command": name, "args": request.args, "server": request.server}
        output = context.host.programs.run(
            SVC, [], msgspec.json.encode(body), context.folder, context.hung_up
        )
        return _wrapped.decode(output)
    try:
        args = msgspec.convert(request.args, command.args)
    except msgspec.ValidationError as error:
        raise UsageError(f"{name}: {error}") from None
    return ApiResponse(True, command.run(context, args))
