"""The option `--queue`: puts a command's change into the outbox, from which it is sent later, instead of
sending it now.

    @queueable
    @answers(COLUMNS, Label)
    def create(ctx: Ctx, …) -> None: …

A queueable command makes one change. Before the change, it may send only the request that looks up the
repository (`ctx.repo`)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec
from typer.core import TyperOption

from localstore.core.errors import ServerUnreachable

if TYPE_CHECKING:
    from localstore.home import Home
    from localstore.outbox import QueuedAction
    from svc.console import Out
    from svc.flows.place.where import Where

F = TypeVar("F", bound=Callable[..., Any])
_NAME, _ANYWHERE = "__svc_queueable__", "__svc_queueable_anywhere__"


def queueable(function: F) -> F:
    """A decorator that gives a command the option `--queue`."""
    setattr(function, _NAME, True)
    return function


def queueable_anywhere(function: F) -> F:
    """A decorator that gives a command the option `--queue`. For commands that are not about a repository."""
    setattr(function, _ANYWHERE, True)
    return queueable(function)


def is_queueable(function: Callable[..., Any]) -> bool:
    return bool(getattr(function, _NAME, False))


def needs_repo(function: Callable[..., Any]) -> bool:
    """Return whether a queueable command is about a repository."""
    return not getattr(function, _ANYWHERE, False)


def queue_option() -> TyperOption:
    def keep(ctx: Any, _param: Any, value: bool) -> None:
        if value:
            ctx.obj.given["queue"] = True

    return TyperOption(
        param_decls=["--queue"],
        help="Keep it for later, without asking the server; see svc queue",
        is_flag=True,
        type=bool,
        default=False,
        expose_value=False,
        callback=keep,
    )


@contextmanager
def offering_queue(where: Where, with_repo: bool) -> Iterator[None]:
    """A context that adds a hint about `--queue` to ServerUnreachable, if the change was not sent and can be
    queued. `with_repo` says whether the change is about a repository."""
    try:
        yield
    except ServerUnreachable as error:
        if error.sent or not _can_queue(where, with_repo):
            raise
        raise ServerUnreachable(
            f"{error.detail}; with --queue the change is kept here and sent later", sent=False
        ) from None


def _can_queue(where: Where, with_repo: bool) -> bool:
    """Return whether the command's change can be queued instead of sent. Three things are needed. The command
    allows it for these arguments. This machine has a session with which the change can be sent later. If
    `with_repo` is True, the repository is the one that the folder is linked to, so that the server need not
    be asked."""
    return (
        where.can_queue
        and (not with_repo or (where.linked is not None and where.named_repo is None))
        and not where.environment.get("SVC_TOKEN")
        and where.sessions.find(where.server) is not None
    )


@contextmanager
def catching_queued(out: Out, home: Home) -> Iterator[None]:
    """A context for a command with `--queue`. When the command has queued its action, the action is printed
    (`print_queued`)."""
    from svc.flows.outbox.actions import Queued

    try:
        yield
    except Queued as queued:
        print_queued(out, home, queued.entry)


def print_queued(out: Out, home: Home, entry: QueuedAction) -> None:
    """Print a queued action (as data with `--json`), and tell a running agent to send it at once."""
    from svc.flows.outbox.actions import describe_action

    _tell_agent(home)
    if out.format.as_data:
        out.data(msgspec.to_builtins(entry))
    else:
        out.done(f"Queued: {describe_action(entry)}. To send it: svc queue retry", value=entry.id)


def _tell_agent(home: Home) -> None:
    from localstore.agent.talk import Request
    from svc.agent.start import tell

    tell(home, Request("send"))
