"""The commands of `invoke`. A command of svc that is not listed here is named by its words: `issue list` is
`issue_list`, in the category System; `svc.cmd.frame.invoked` runs it.
"""

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
        """The current states of the watched folders."""

    def pause(self, folder: str | None, paused: bool) -> list[Folder]:
        """Stop sending and fetching edits of a folder (None: of all), or resume if `paused` is False. Returns
        the states of these folders."""

    def reader(self, origin: str | None) -> Api:
        """The API of a server; without an origin, of the server of the last sign-in."""


class Asked(NamedTuple):
    """One invocation: the agent, the client's folder and server (None: not named), and whether the client has
    hung up."""

    host: Host
    folder: Path | None
    server: str | None
    hung_up: HungUp


class Command(NamedTuple):
    """A command of `invoke`. `args`: the struct of its arguments; `run`: carries it out and returns its
    data."""

    category: str
    summary: str
    args: type[Args]
    run: Callable[[Asked, Any], Any]


F = TypeVar("F", bound=Callable[[Asked, Any], Any])
COMMANDS: dict[str, Command] = {}


def command(category: str, args: type[Args] = Args) -> Callable[[F], F]:
    """A decorator that declares a function as a command of this category. The first line of the function's
    docstring is the command's summary."""

    def declare(function: F) -> F:
        summary = (function.__doc__ or "").strip().splitlines()[0]
        COMMANDS[function.__name__] = Command(category, summary, args, function)
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
