"""The commands of `invoke`, in categories. A command of svc that is not listed here is in the category
System. It is called by its words, joined with underscores: `issue list` is `issue_list`.
`svc.cmd.frame.invoked` runs it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple, Protocol, TypeVar

import msgspec

from localstore.agent.server import HungUp
from localstore.agent.talk import Folder
from localstore.home import Home
from svc.agent.invoke.programs import Programs
from svc.api import Api


class Args(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """The arguments of a command, as a struct; subclasses add one member for each argument."""


class Host(Protocol):
    """The methods of the agent that commands use."""

    home: Home
    programs: Programs

    def states(self) -> list[Folder]:
        """Return the current states of the watched folders."""

    def pause(self, folder: str | None, paused: bool) -> list[Folder]:
        """Stop sending and fetching edits of a folder, or resume if `paused` is False. If `folder` is None,
        this applies to all folders. Returns the states of these folders."""

    def reader(self, origin: str | None) -> Api:
        """Return the API of the server `origin`. If it is None, the server of the last sign-in is used."""


class Invocation(NamedTuple):
    """One invocation of a command. It has the agent, the folder and server that the client named (None if it
    named none), and a function that says whether the client has disconnected."""

    host: Host
    folder: Path | None
    server: str | None
    hung_up: HungUp


class InvokeCommand(NamedTuple):
    """A command of `invoke`. `args` is the struct of its arguments. `run` is the function that carries out
    the command and returns its data."""

    category: str
    summary: str
    args: type[Args]
    run: Callable[[Invocation, Any], Any]


F = TypeVar("F", bound=Callable[[Invocation, Any], Any])
COMMANDS: dict[str, InvokeCommand] = {}


def command(category: str, args: type[Args] = Args) -> Callable[[F], F]:
    """A decorator that declares a function as a command of this category. The first line of the function's
    docstring is the command's summary."""

    def declare(function: F) -> F:
        summary = (function.__doc__ or "").strip().splitlines()[0]
        COMMANDS[function.__name__] = InvokeCommand(category, summary, args, function)
        return function

    return declare


_APPS = "launch list stop status restart logs install uninstall update manifest open check"
SVC_COMMANDS: Mapping[str, tuple[str, str]] = {
    "sync_push": ("Sync", "push"),
    "sync_pull": ("Sync", "pull"),
    "sync_retry": ("Sync", "queue retry"),
    "sync_conflicts": ("Sync", "conflicts"),
    "document_create": ("Sync", "doc create"),
    "auth_login": ("Auth", "login"),
    "auth_logout": ("Auth", "logout"),
    "auth_status": ("Auth", "auth status"),
    "device_list": ("Auth", "auth device list"),
    "device_revoke": ("Auth", "auth device revoke"),
    **{f"app_{name}": ("Launcher", f"app {name}") for name in _APPS.split()},
}
"""Name → category, and the command of svc that it is."""

ABSENT: Mapping[str, str] = {
    "device_pair": "Auth",
    "beekem_init": "Auth",
}
"""Name → category of those that this version lacks."""
CATEGORIES = ("Sync", "Auth", "Hardware", "Gallery", "Launcher", "Models", "System")
