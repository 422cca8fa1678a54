"""The commands `svc watcher …`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from localstore.core.paths import terminal_safe
from localstore.core.times import rfc3339
from localstore.watch.protocol import WatcherInfo
from svc.cmd.frame.context import Ctx
from svc.console import Column, answers
from svc.flows.watcher import running_watchers, watch_in_foreground
from svc.flows.watcher import start as start_watcher
from svc.flows.watcher import stop as stop_watcher

COLUMNS = (Column("folder"), Column("pid"), Column("since", kind="time"), Column("directories"))


@answers(COLUMNS)
def start(
    ctx: Ctx,
    foreground: Annotated[
        bool, typer.Option("--foreground", help="Watch in this process until it ends")
    ] = False,
) -> None:
    """Watch this folder, so that svc status need not walk it

    A background process records which directories change, so that svc status scans only these. It ends with
    svc watcher stop, when the machine is shut down, or when the folder is moved, deleted or unlinked. Without
    it everything works, only more slowly. Works on Linux only, and only on file systems of this machine.

    Examples:
    svc watcher start
    svc watcher start --foreground
    """
    folder, record = _linked_record(ctx)
    if foreground:
        _watch_here(ctx, folder, record)
        return
    watcher, new = start_watcher(folder, record)
    _print_done(ctx, "Watching" if new else "Already watching", watcher)


@answers(COLUMNS)
def stop(ctx: Ctx) -> None:
    """End the watcher of this folder

    Examples:
    svc watcher stop
    """
    folder, record = _linked_record(ctx)
    watcher = stop_watcher(record)
    if watcher is None:
        empty = dict.fromkeys((column.name for column in COLUMNS), None) | {"folder": str(folder)}
        ctx.out.done(f"Nothing watches {terminal_safe(str(folder))}", empty, COLUMNS)
        return
    _print_done(ctx, "No longer watching", watcher)


@answers(COLUMNS)
def list_watched(ctx: Ctx) -> None:
    """List the folders that are watched on this machine

    Examples:
    svc watcher list
    svc watcher list --json folder,pid
    """
    rows = [_record(watcher) for watcher in running_watchers(ctx.obj.home)]
    ctx.out.rows(rows, COLUMNS, empty="no folder is watched; svc watcher start watches one")


def _watch_here(ctx: Ctx, folder: Path, record: Path) -> None:
    reason = watch_in_foreground(
        folder, record, lambda watcher: _print_done(ctx, "Watching", watcher), ctx.out.note
    )
    ctx.out.note(f"ended: {reason}")


def _linked_record(ctx: Ctx) -> tuple[Path, Path]:
    """Return the linked folder, and the path of its record in SVC_HOME. Raises NotLinked if the current
    folder is in no linked folder."""
    folder, link = ctx.obj.linked_folder()
    return folder, ctx.obj.home.record_of(folder, link.repo_id)


def _record(watcher: WatcherInfo) -> dict[str, object]:
    return {
        "folder": watcher.folder.decode("utf-8", "backslashreplace"),
        "pid": watcher.pid,
        "since": rfc3339(watcher.since),
        "directories": watcher.directories,
    }


def _print_done(ctx: Ctx, what: str, watcher: WatcherInfo) -> None:
    record = _record(watcher)
    directories = "1 directory" if watcher.directories == 1 else f"{watcher.directories:,} directories"
    sentence = f"{what} {terminal_safe(str(record['folder']))} ({directories}, process {watcher.pid})"
    ctx.out.done(sentence, record, COLUMNS, value=str(watcher.pid))
