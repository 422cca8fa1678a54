"""The command `svc pull`."""

from __future__ import annotations

from typing import Annotated

import typer

from localstore.core.errors import EXIT_FAILED, UsageError
from localstore.core.paths import terminal_safe
from localstore.core.words import count
from svc.cmd.frame.context import Ctx
from svc.cmd.frame.options import DryRun
from svc.cmd.frame.working_copy import (
    by_whom,
    conflict_record,
    note_conflicts,
    note_hidden,
    note_merged,
    note_skipped,
    path_list,
    skipped_record,
)
from svc.console import Column, answers
from svc.flows.place.folder import copy_for_pulling
from svc.flows.pull import Mode, PullResult
from svc.flows.pull import pull as pull_copy

COLUMNS = (
    Column("seal", kind="id"),
    Column("changed"),
    Column("removed"),
    Column("live"),
    Column("conflicts"),
    Column("skipped"),
    Column("given_up"),
    Column("hidden"),
    Column("trash"),
)


@answers(COLUMNS)
def pull(
    ctx: Ctx,
    force: Annotated[
        bool, typer.Option("--force", help="Move my edits to the trash and use the branch's files")
    ] = False,
    merge: Annotated[bool, typer.Option("--merge", help="Merge my edits with the branch's")] = False,
    dry_run: DryRun = False,
) -> None:
    """Bring the branch's changes into this folder

    This includes edits of others that are not sealed yet; the command names their authors. Your own edits are
    never overwritten: --merge merges them, and --force moves them to a trash folder, whose name is printed.
    Exits 1 if edits could not be merged; svc resolve ends such a conflict.

    Examples:
    svc pull
    svc pull --merge
    svc pull --dry-run --json changed
    """
    if force and merge:
        raise UsageError("--force drops your edits and --merge keeps them; use one of them")
    mode: Mode = "force" if force else "merge" if merge else "plain"
    ctx.out.goes_on = not dry_run
    with copy_for_pulling(ctx.obj) as copy:
        done = pull_copy(copy, mode, dry_run=dry_run)
    if done.replaced:
        branch = ctx.obj.linked[1].branch if ctx.obj.linked else ""
        stands = "would be" if done.dry_run else "is"
        ctx.out.note(f"branch {branch} was deleted and made again; this folder {stands} on the new one now")
    note_skipped(ctx, done.skipped, done.dry_run)
    note_merged(ctx, done.merged, done.dry_run)
    note_conflicts(ctx, done.conflicts, done.dry_run)
    note_hidden(ctx, done.hidden, done.dry_run)
    for path, moved in done.returned.items():
        back = (
            f"{path}: you deleted it and others edited it, so it {'would be' if done.dry_run else 'is'} back"
        )
        renamed = f"; {moved}, which has its former text, lacks their edit" if moved else ""
        ctx.out.note(terminal_safe(back + renamed))
    both = "both would be there" if done.dry_run else "both are there"
    for path, (own_name, other_name) in done.renamed_twice.items():
        ctx.out.note(
            terminal_safe(f"{path}: you renamed it to {own_name} and others to {other_name}; {both}")
        )
    if done.live:
        ctx.out.note(f"not sealed yet: {by_whom(done.live)}")
    if done.trash:
        ctx.out.note(f"your edited files are in {done.trash}")
    elif done.dry_run and done.given_up:
        ctx.out.note(f"would give up your edits in {path_list(done.given_up)}")
    ctx.out.done(_sentence(done), _record(done), COLUMNS, value=None if done.dry_run else done.seal or "")
    if done.conflicts and not done.dry_run:
        ctx.exit(EXIT_FAILED)


def _sentence(done: PullResult) -> str:
    at = f" at {done.seal[:12]}" if done.seal else ""
    removed = set(done.removed)
    names = path_list(f"{path} (removed)" if path in removed else path for path in done.changed)
    if done.dry_run:
        return f"Would change {count(len(done.changed), 'file')}{': ' if names else ''}{names}"
    if not done.changed:
        return f"Up to date{at}"
    return f"Changed {count(len(done.changed), 'file')}{at}: {names}"


def _record(done: PullResult) -> dict[str, object]:
    return {
        "seal": done.seal,
        "changed": done.changed,
        "removed": done.removed,
        "live": done.live,
        "conflicts": [conflict_record(conflict) for conflict in done.conflicts],
        "skipped": [skipped_record(item) for item in done.skipped],
        "given_up": done.given_up,
        "hidden": sorted(done.hidden),
        "trash": str(done.trash) if done.trash else None,
    }
