"""`svc watch`: live sync of a folder."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import msgspec
import typer

from localstore.agent import place
from localstore.agent.talk import AgentSilent, Conversation, Folder, FolderEvent, Reply, Request
from localstore.core.errors import ClientError
from localstore.core.paths import terminal_safe
from localstore.core.times import rfc3339
from localstore.core.words import count
from localstore.errors import NotWatched
from localstore.folder import link
from svc.agent.start import reach, start
from svc.cmd.frame.context import Ctx
from svc.console import Column, answers

EVENTS = (Column("at", kind="time"), Column("event"), Column("path"), Column("by"), Column("detail"))
FOLDERS = (
    Column("folder"),
    Column("repo"),
    Column("branch"),
    Column("light"),
    Column("queued"),
    Column("detached"),
    Column("since", kind="time"),
)
SOCKETS = (Column("socket"), Column("folder"))
GLYPHS = {"live": "●", "polling": "◐", "offline": "○"}
COLOURS = {"live": "green", "polling": "cyan", "offline": "yellow"}
FolderPath = Annotated[str, typer.Argument(metavar="[FOLDER]", help="A linked folder; here if left out")]


@answers(EVENTS, FolderEvent)
def watch(
    ctx: Ctx,
    folder: FolderPath = "",
    detach: Annotated[
        bool,
        typer.Option("--detach", help="Watch in the background, until svc watch stop"),
    ] = False,
) -> None:
    """Keep this folder and its branch together, save by save

    Each save is sent to the branch at once, and the saves of others are written to this folder. Nothing is
    sealed; svc push does that. The command prints events until Ctrl-C, with --json as one object in each
    line. Saves that are made without a network are sent later. A program that edits for you, such as an AI
    agent, names its piece of work in SVC_TURN.

    Examples:
    svc watch
    svc watch ~/app --detach
    svc watch --json event,path,by
    """
    root = _root(ctx, folder)
    turn = ctx.obj.environment.get("SVC_TURN") or None
    while True:
        with start(ctx.obj.home) as agent:
            watched_folder = _ask(agent, Request("watch", str(root), detach, turn)).folders[0]
            if detach:
                label = terminal_safe(watched_folder.folder)
                record = {**dict.fromkeys((column.name for column in EVENTS), None), "event": "light"}
                record |= {"folder": watched_folder.folder, "state": watched_folder.light}
                ctx.out.done(
                    f"Watching {label}: {watched_folder.repo}, branch {watched_folder.branch}",
                    record,
                    EVENTS,
                    FolderEvent,
                )
                return
            _ask(agent, Request("follow", str(root), turn=turn))
            _begin(ctx, watched_folder)
            if _follow(ctx, agent.events()):
                return
        ctx.out.note("the agent ended; starting it again")
        time.sleep(0.2)


@answers(FOLDERS, Folder)
def list_watches(ctx: Ctx) -> None:
    """List the folders that are watched, with their light

    ● live: each save is sent at once. ◐ polling: each save is sent at once, and changes of others are
    requested regularly. ○ offline: saves wait for the network.

    Examples:
    svc watch list
    svc watch list --json folder,light,people
    """
    agent = reach(ctx.obj.home)
    folders: list[Folder] = []
    if agent is not None:
        with agent:
            folders = _ask(agent, Request("about")).folders
    ctx.out.rows(map(_record, folders), FOLDERS, Folder, empty="no folder is watched; svc watch watches one")
    if not ctx.out.format.as_data:
        for folder in folders:
            if folder.why:
                ctx.out.note(f"{terminal_safe(folder.folder)}: {terminal_safe(folder.why)}")


class Socket(msgspec.Struct):
    """The answer of `svc watch socket`. Has the path of the agent's socket, and the linked folder."""

    socket: str
    folder: str


@answers(SOCKETS, Socket)
def print_socket(ctx: Ctx, folder: FolderPath = "") -> None:
    """Print the agent's socket, for editor plugins

    The agent is started if none runs. The guide's page on editors describes the messages of plugins.

    Examples:
    svc watch socket
    svc watch socket src --json socket,folder
    """
    root = _root(ctx, folder)
    start(ctx.obj.home).close()
    record = Socket(str(ctx.obj.home.root.resolve() / place.SOCKET), str(root))
    ctx.out.done(f"The agent listens at {record.socket}", record, SOCKETS, Socket, value=record.socket)


@answers(FOLDERS, Folder)
def stop(
    ctx: Ctx,
    folder: FolderPath = "",
    everything: Annotated[bool, typer.Option("--all", help="All folders, and end the agent")] = False,
) -> None:
    """Stop watching this folder

    Edits that are not sent yet stay here; svc push or the next svc watch sends them.

    Examples:
    svc watch stop
    svc watch stop --all
    """
    named = None if everything else str(_root(ctx, folder))
    agent = reach(ctx.obj.home)
    if agent is None:
        if named is not None:
            raise NotWatched(terminal_safe(named))
        stopped = []
    else:
        with agent:
            stopped = _ask(agent, Request("stop", named)).folders
    if everything:
        ctx.out.rows(map(_record, stopped), FOLDERS, Folder, empty="no folder was watched")
        return
    ctx.out.done(f"No longer watching {terminal_safe(str(named))}", _record(stopped[0]), FOLDERS, Folder)


def _root(ctx: Ctx, typed: str) -> Path:
    """Return the linked folder that contains the typed path. Without a path, the current folder is used.
    Raises NotLinked if there is none."""
    if typed:
        root = link.find((ctx.obj.folder / typed).resolve())
        link.read_repo(root)
        return root.resolve()
    return ctx.obj.linked_folder()[0].resolve()


def _ask(agent: Conversation, request: Request) -> Reply:
    try:
        reply = agent.ask(request)
    except AgentSilent:
        raise ClientError("the agent of this machine does not answer; see agent.log in SVC_HOME") from None
    if reply.code == NotWatched.code:
        raise NotWatched(terminal_safe(request.folder or ""))
    if reply.error:
        raise _Refused(reply.error)
    return reply


class _Refused(ClientError):
    """Raised if the agent refuses the request. The message is the agent's sentence."""


def _begin(ctx: Ctx, folder: Folder) -> None:
    if ctx.out.format.as_data:
        return
    label = f"{folder.repo}, branch {folder.branch}"
    ctx.out.note(f"watching {terminal_safe(folder.folder)} ({label}); Ctrl-C ends it")
    if folder.light != "offline" or folder.why != "connecting":
        ctx.out.line(_light_sentence(folder.light, folder.why), COLOURS[folder.light])
    if folder.light == "live" and folder.why:
        ctx.out.note(folder.why)
    for person in folder.people:
        event = FolderEvent(
            "person",
            folder.folder,
            "",
            person.path,
            person.who,
            person.device,
            person.kind == "agent",
            person.line,
        )
        ctx.out.line(sentence_of(event))


def _follow(ctx: Ctx, events: Iterator[FolderEvent]) -> bool:
    """Print the events of a watched folder. Returns True if the folder is no longer watched, False if the
    agent has ended."""
    for event in events:
        if ctx.out.format.as_data:
            ctx.out.event(event, EVENTS, FolderEvent)
        else:
            colour = COLOURS.get(event.state, "") if event.event == "light" else ""
            ctx.out.line(f"{_clock()}  {sentence_of(event)}", colour)
        if event.event == "ended":
            return True
    return False


def _clock() -> str:
    return time.strftime("%H:%M:%S")


def _light_sentence(light: str, why: str) -> str:
    words = f"{GLYPHS.get(light, '?')} {light}"
    return f"{words}: {why}" if why and light != "live" else words


def sentence_of(event: FolderEvent) -> str:
    """Return a line that describes an event to the user."""
    path, who = event.path, f"@{event.by}" if event.by else "somebody"
    if event.agent:
        who += " (agent)"
    match event.event:
        case "light":
            return _light_sentence(event.state, event.detail)
        case "sent":
            return f"→ {path}" + (" removed" if event.gone else "")
        case "came":
            return f"← {path}" + (" removed" if event.gone else "") + (f" by {who}" if event.by else "")
        case "merged":
            return f"  {path}: merged with " + (f"{who}'s edit" if event.by else "edits by others")
        case "kept":
            lines = count(event.lines, "line")
            return f"  {path}: kept {lines} of {who}, which this save lacked; save again to take them out"
        case "conflict" | "renamed":
            return _moved_sentence(event, who)
        case "refused" | "skipped":
            return f"  {event.event} {path}: {event.detail}"
        case "person":
            return _person(event, who)
        case "seal":
            return f"  at seal {event.seal[:12]}" + (f" by {who}" if event.by else "")
        case _:
            return f"  {event.detail}"


def _moved_sentence(event: FolderEvent, who: str) -> str:
    """Return a line for the user about an event of a watched folder: a file was renamed with its edits, or an
    edit was kept in a conflict copy."""
    if event.event == "renamed" and event.back:
        return f"  {event.path} is back: it is {event.to} here, and an edit by others does not fit into that"
    if event.event == "renamed":
        return f"  {event.path} is {event.to} now, and the edit of {event.path} is in it"
    whose = f"{who}'s version" if event.by else "the branch's version"
    stays = "it was deleted on the branch" if event.gone else f"{whose} stays"
    return f"  conflict in {event.path}: {stays}; yours is kept whole as {event.kept_as}"


def _person(event: FolderEvent, who: str) -> str:
    on = f" on {event.device}" if event.device else ""
    if event.gone:
        return f"  {who}{on} went"
    if not event.path:
        return f"  {who}{on} is here"
    return f"  {who}{on} is in {event.path}" + (f", line {event.line}" if event.line else "")


def _record(folder: Folder) -> dict[str, object]:
    record: dict[str, object] = {name: getattr(folder, name) for name in folder.__struct_fields__}
    record["people"] = msgspec.to_builtins(folder.people)
    record["since"] = rfc3339(folder.since)
    return record
