"""The command `svc switch`."""

from __future__ import annotations

from typing import Annotated

import typer

from localstore.agent.talk import Request
from localstore.core.errors import EXIT_FAILED, UsageError
from localstore.core.words import count
from svc.agent.start import tell
from svc.cmd.frame.context import Ctx
from svc.cmd.frame.working_copy import (
    conflict_record,
    naming_hidden,
    note_conflicts,
    note_hidden,
    note_merged,
    path_list,
)
from svc.console import Column, answers
from svc.flows.place.folder import copy_for_pulling
from svc.flows.place.refs import HEADS
from svc.flows.place.target import target_of
from svc.flows.pull import Mode
from svc.flows.switch import switch as switch_copy

COLUMNS = (
    Column("branch"),
    Column("seal", kind="id"),
    Column("changed"),
    Column("conflicts"),
    Column("carried"),
    Column("trash"),
    Column("hidden"),
)


@answers(COLUMNS)
def switch(
    ctx: Ctx,
    branch: Annotated[str, typer.Argument(metavar="BRANCH|TAG|SEAL", help="svc repo branch makes a branch")],
    merge: Annotated[bool, typer.Option("--merge", help="Merge my edits with the files there")] = False,
    force: Annotated[bool, typer.Option("--force", help="Move my edits to the trash")] = False,
) -> None:
    """Switch this folder to another branch, or show a tag or seal

    Edits that were not pushed are kept if the target has the same version of the edited files. Otherwise the
    switch is refused and the files are named, unless --merge or --force is given. A tag or seal is shown
    read-only, and pushes are refused until the folder is on a branch again. "svc switch -" returns to the
    previous branch, tag or seal.

    Examples:
    svc switch parser
    svc switch main --merge
    svc switch -
    svc switch v1.0
    """
    if force and merge:
        raise UsageError("--force drops your edits and --merge keeps them; use one of them")
    mode: Mode = "force" if force else "merge" if merge else "plain"
    folder, link = ctx.obj.linked_folder()
    if branch == "-":
        if not isinstance(link.before, str):
            raise UsageError("this folder was on no other branch; svc repo branch lists them")
        branch = link.before
    elif branch in HEADS:
        branch = link.shown_seal or link.branch
    if branch == link.branch and not link.shown_seal:
        record: dict[str, object] = {
            "branch": branch,
            "seal": None,
            "changed": [],
            "conflicts": [],
            "carried": [],
            "trash": None,
            "hidden": [],
        }
        ctx.out.done(f"Already on {branch}; svc pull brings its changes", record, COLUMNS, value=branch)
        return
    target = target_of(ctx.obj, link, branch)
    with copy_for_pulling(ctx.obj) as copy, naming_hidden(ctx, copy):
        switched = switch_copy(copy, target, mode)
    tell(ctx.obj.home, Request("switched", str(folder.resolve())))
    note_merged(ctx, switched.pulled.merged)
    note_conflicts(ctx, switched.pulled.conflicts)
    note_hidden(ctx, switched.pulled.hidden)
    if switched.warning:
        ctx.out.note(switched.warning)
    if switched.carried:
        ctx.out.note(f"your edits came along: {path_list(switched.carried)}")
    if switched.trash:
        ctx.out.note(f"your edited files are in {switched.trash}")
    record = {
        "branch": target.branch if target.seal is None else None,
        "seal": switched.pulled.seal,
        "changed": switched.pulled.changed,
        "conflicts": [conflict_record(conflict) for conflict in switched.pulled.conflicts],
        "carried": switched.carried,
        "trash": str(switched.trash) if switched.trash else None,
        "hidden": sorted(switched.pulled.hidden),
    }
    files = f"{count(len(switched.pulled.changed), 'file')} changed"
    if target.seal:
        way = f"svc switch {link.branch} returns to it"
        sentence = f"Showing the seal {target.seal[:12]}, read only, {files}; {way}"
    else:
        sentence = f"On branch {switched.branch}, {files}"
    ctx.out.done(sentence, record, COLUMNS, value=switched.branch)
    if switched.pulled.conflicts:
        ctx.exit(EXIT_FAILED)
