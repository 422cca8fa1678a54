"""Commands on sync on this machine: show how each folder is connected (live, polling, offline), show waiting
actions, and pause."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec

from localstore.agent.talk import Folder, Light
from localstore.errors import NotWatched
from localstore.outbox import QueuedAction
from svc.agent.invoke.table import Args, Invocation, command
from svc.flows.outbox.actions import describe_action, has_entries, using_outbox

_WORST: tuple[Light, ...] = ("offline", "polling", "live")


class WatchedFolderArgs(Args):
    """Names a watched folder by its absolute path. If it is left out, all watched folders are meant."""

    folder: str | None = None


class PauseArgs(WatchedFolderArgs):
    """Names folders to pause or resume. They are resumed if `paused` is False."""

    paused: bool = True


class QueueArgs(Args):
    """A request for at most `limit` actions of the outbox."""

    limit: Annotated[int, msgspec.Meta(ge=1, le=10_000)] = 1_000


class QueueCounts(msgspec.Struct):
    """Counts of the actions in the outbox: the number of waiting actions, the time of the oldest one, and the
    number of refused actions."""

    waiting: int
    refused: int
    oldest: str | None


class SyncStatus(msgspec.Struct):
    """The connection state of all watched folders. `light` is the worst of their states (live, polling,
    offline). It is None if no folder is watched."""

    light: Light | None
    folders: list[Folder]
    queue: QueueCounts


@command("Sync", WatchedFolderArgs)
def sync_status(context: Invocation, args: WatchedFolderArgs) -> SyncStatus:
    """Watched folders with their connections and people, and the number of actions in the outbox"""
    folders = [folder for folder in context.host.states() if args.folder in (None, folder.folder)]
    if args.folder is not None and not folders:
        raise NotWatched(args.folder)
    lights = {folder.light for folder in folders}
    entries = _entries(context)
    waiting = [entry for entry in entries if entry.state != "refused"]
    oldest = waiting[0].created_at if waiting else None
    return SyncStatus(
        next((light for light in _WORST if light in lights), None),
        folders,
        QueueCounts(len(waiting), len(entries) - len(waiting), oldest),
    )


@command("Sync", QueueArgs)
def sync_queue(context: Invocation, args: QueueArgs) -> list[dict[str, Any]]:
    """The actions that wait or were refused, oldest first"""
    return [
        {**msgspec.to_builtins(entry), "action": describe_action(entry), "created_at": entry.created_at}
        for entry in _entries(context)[: args.limit]
    ]


@command("Sync", PauseArgs)
def sync_pause(context: Invocation, args: PauseArgs) -> list[Folder]:
    """Stop exchanging edits with others, until it is called with paused false"""
    return context.host.pause(args.folder, args.paused)


def _entries(context: Invocation) -> list[QueuedAction]:
    if not has_entries(context.host.home):
        return []
    with using_outbox(context.host.home) as outbox:
        return outbox.list()
