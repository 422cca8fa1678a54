"""The command `svc status`, also `svc repo status`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from typing import Annotated

import typer

from localstore.core.errors import SvcError
from localstore.core.paths import terminal_safe
from svc.cmd.frame.context import Ctx
from svc.cmd.frame.working_copy import note_left_out, path_list, reason_with_sizes, skipped_record
from svc.console import Column, answers
from svc.flows.background import BackgroundCall
from svc.flows.place.folder import copy_for_reading
from svc.flows.status import WAIT_SECONDS, FolderStatus
from svc.flows.status import status as look_at

ROWS = (Column("state", kind="state"), Column("path", kind="name"), Column("reason", kind="line"))
FIELDS = tuple(
    Column(name)
    for name in (
        "repo",
        "branch",
        "last_seal",
        "head",
        "behind",
        "offline",
        "changed",
        "new",
        "removed",
        "lacking",
        "skipped",
        "ignored",
        "unsent",
        "branch_state",
        "shown",
        "left_out",
        "unresolved",
        "merging",
    )
)


@answers(FIELDS, table=ROWS)
def status(
    ctx: Ctx,
    offline: Annotated[
        bool, typer.Option("--offline", help="Do not ask the server for the branch's head")
    ] = False,
    ignored: Annotated[
        bool, typer.Option("--ignored", help="Also list ignored files, each with its rule")
    ] = False,
    short: Annotated[
        bool, typer.Option("-s", "--short", help="Only the lines, without the headline")
    ] = False,
) -> None:
    """Show what differs between this folder and its branch

    Prints one line for each file that a push would send (changed, new, removed) or leave out (skipped, with
    the reason). With --json it prints one record with lists. Works without a network and without a session.
    If the server has not answered after three seconds, it counts as offline.

    Examples:
    svc status
    svc status --ignored
    svc status --json changed,new --jq '.changed + .new | .[]'
    """
    with copy_for_reading(ctx.obj) as copy:
        ctx.reader.http.attempts = 1  # the status does not wait for a second attempt
        ask = partial(ctx.reader.repo.find_linked, copy.repo.repo_id, copy.repo.repo)
        linked_repo = None if offline else BackgroundCall(ask)
        summary = look_at(copy, offline, ignored, ctx.reader.signed_in)
        if linked_repo is not None and not summary.offline:
            with suppress(SvcError):  # the head is known; name and class of the repository are optional
                repo = linked_repo.answer(WAIT_SECONDS)
                copy.rename(repo.full_name, repo.class_)
                summary.repo = copy.repo.repo
    if ctx.out.format.as_data:
        ctx.out.record(_record(summary), FIELDS)
        return
    if not short:
        ctx.out.note(_headline(summary))
        if summary.advice:
            ctx.out.note(summary.advice)
        if summary.lacking and not summary.uncompared:
            ctx.out.note(
                f"not here yet: {path_list(map(terminal_safe, summary.lacking))}; svc pull brings them"
            )
        note_left_out(ctx, summary.tracked, summary.warnings)
        if summary.git_ignored:
            label = path_list(terminal_safe(file.path) for file in summary.git_ignored)
            ctx.out.note(
                f"git ignores for you alone: {label}; svc push asks before it sends them, svc repo "
                "git-ignored lists their rules"
            )
    if summary.uncompared and ctx.out.interactive:  # each file would be listed as new
        return
    ctx.out.rows(_rows(summary), ROWS, empty="no edits")
    if summary.unresolved and not short:
        for kept_as, path in summary.unresolved.items():
            if kept_as not in summary.new and kept_as not in summary.changed:
                ctx.out.note(
                    f"{terminal_safe(kept_as)}, your version of {terminal_safe(path)}, is not resolved yet"
                )
        ctx.out.note("to end a conflict: svc resolve PATH; svc conflicts lists them")
    if summary.merging and not short:
        label = terminal_safe(summary.merging)
        ctx.out.note(f"merged {label}, not pushed yet: svc merge --continue, or svc merge --abort")


def _headline(summary: FolderStatus) -> str:
    if summary.shown:
        way = f"svc switch {summary.branch} returns to it"
        return f"{summary.repo}, showing the seal {summary.shown[:12]}, read only; {way}"
    if summary.uncompared:
        place = f"{summary.repo}, branch {summary.branch}, which this folder was not compared with yet"
        return f"{place}; svc pull does that, and ends a switch that was interrupted; your edits stay"
    at = f"at {summary.last_seal[:12]}" if summary.last_seal else "with no seal yet"
    text = f"{summary.repo}, branch {summary.branch}, {at}"
    if summary.behind:
        text += "; the branch has a newer seal: svc pull"
    if summary.offline:
        text += "; not compared with the server" if summary.advice else "; offline"
    if summary.unsent:
        text += f"; {summary.unsent} on the way"
    return text


def _rows(summary: FolderStatus) -> Iterator[dict[str, str]]:
    for state, paths in (("changed", summary.changed), ("new", summary.new), ("removed", summary.removed)):
        for path in paths:
            other = summary.unresolved.get(path)
            reason = f"your version of {other}, a conflict; svc resolve {other}" if other else ""
            yield {"state": state, "path": path, "reason": reason}
    for item in summary.skipped:
        yield {"state": "skipped", "path": item.path, "reason": reason_with_sizes(item)}
    for ignored in summary.left_out:
        yield {"state": "ignored", "path": ignored.path, "reason": ignored.rule}


def _record(summary: FolderStatus) -> dict[str, object]:
    record: dict[str, object] = {column.name: getattr(summary, column.name) for column in FIELDS}
    record["left_out"] = [{"path": item.path, "rule": item.rule} for item in summary.left_out]
    return record | {"skipped": [skipped_record(item) for item in summary.skipped]}
