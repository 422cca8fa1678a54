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
    naming_hidden,
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
    with copy_for_pulling(ctx.obj) as copy, naming_hidden(ctx, copy):
        pulled = pull_copy(copy, mode, dry_run=dry_run)
    if pulled.replaced:
        branch = ctx.obj.linked[1].branch if ctx.obj.linked else ""
        stands = "would be" if pulled.dry_run else "is"
        ctx.out.note(f"branch {branch} was deleted and made again; this folder {stands} on the new one now")
    note_skipped(ctx, pulled.skipped, pulled.dry_run)
    note_merged(ctx, pulled.merged, pulled.dry_run)
    note_conflicts(ctx, pulled.conflicts, pulled.dry_run)
    note_hidden(ctx, pulled.hidden, pulled.dry_run)
    for path, moved in pulled.returned.items():
        stands = "would be" if pulled.dry_run else "is"
        back = f"{path}: you deleted it and others edited it, so it {stands} back"
        renamed = f"; {moved}, which has its former text, lacks their edit" if moved else ""
        ctx.out.note(terminal_safe(back + renamed))
    both = "both would be there" if pulled.dry_run else "both are there"
    for path, (own_name, other_name) in pulled.renamed_twice.items():
        ctx.out.note(
            terminal_safe(f"{path}: you renamed it to {own_name} and others to {other_name}; {both}")
        )
    if pulled.live:
        ctx.out.note(f"not sealed yet: {by_whom(pulled.live)}")
    if pulled.trash:
        ctx.out.note(f"your edited files are in {pulled.trash}")
    elif pulled.dry_run and pulled.given_up:
        ctx.out.note(f"would give up your edits in {path_list(pulled.given_up)}")
    value = None if pulled.dry_run else pulled.seal or ""
    ctx.out.done(_sentence(pulled), _record(pulled), COLUMNS, value=value)
    if pulled.conflicts and not pulled.dry_run:
        ctx.exit(EXIT_FAILED)


def _sentence(result: PullResult) -> str:
    at = f" at {result.seal[:12]}" if result.seal else ""
    removed = set(result.removed)
    names = path_list(f"{path} (removed)" if path in removed else path for path in result.changed)
    if result.dry_run:
        return f"Would change {count(len(result.changed), 'file')}{': ' if names else ''}{names}"
    if not result.changed:
        return f"Up to date{at}"
    return f"Changed {count(len(result.changed), 'file')}{at}: {names}"


def _record(result: PullResult) -> dict[str, object]:
    return {
        "seal": result.seal,
        "changed": result.changed,
        "removed": result.removed,
        "live": result.live,
        "conflicts": [conflict_record(conflict) for conflict in result.conflicts],
        "skipped": [skipped_record(item) for item in result.skipped],
        "given_up": result.given_up,
        "hidden": sorted(result.hidden),
        "trash": str(result.trash) if result.trash else None,
    }
