"""The command `svc restore`."""

from __future__ import annotations

from typing import Annotated

import typer

from localstore.core.errors import SvcError
from localstore.core.words import count
from svc.cmd.frame.context import Ctx
from svc.cmd.frame.working_copy import path_list
from svc.console import Column, answers
from svc.flows.common import begin, take_back
from svc.flows.place.folder import copy_for_local_work, copy_for_pulling
from svc.flows.place.refs import seal_of
from svc.flows.restore import RestoreResult
from svc.flows.restore import restore as restore_files

COLUMNS = (Column("paths"), Column("removed"), Column("trash"))


@answers(COLUMNS)
def restore(
    ctx: Ctx,
    paths: Annotated[list[str], typer.Argument(metavar="PATH", help="Files, folders or patterns; . is all")],
    source: Annotated[
        str,
        typer.Option(
            "--from", "--source", metavar="REF", help="A branch, tag or seal; else the last seal here"
        ),
    ] = "",
) -> None:
    """Restore files from the last seal, or from another one

    The files that are replaced move to a trash folder, whose name is printed. With --from, files that the
    branch has and the seal lacks are removed, too, after a question. `svc restore --from SEAL .` restores a
    whole old version. New files that were never pushed stay. On the branch this is an ordinary edit.

    Examples:
    svc restore src/main.py
    svc restore '*.md' docs
    svc restore --from v1.0 docs
    svc restore --from 3f2a91 . --yes
    """
    repo_paths = [ctx.path_in_repo(path) for path in paths]

    def agreed(plan: RestoreResult) -> None:
        if plan.removed:
            ctx.confirm(
                f"Restoring from {source} moves {count(len(plan.removed), 'file')} to the trash that it does "
                f"not have ({path_list(plan.removed)})"
            )

    with copy_for_local_work(ctx.obj) as copy:
        seal = (
            seal_of(ctx.obj, ctx.reader.repo.find_linked(copy.repo.repo_id, copy.repo.repo), source)
            if source
            else None
        )
        restored = restore_files(copy, repo_paths, seal, agreed)
    if restored.trash:
        ctx.out.note(f"the replaced files are in {restored.trash}")
    if restored.on_the_way:
        _take_back(ctx, restored.on_the_way)
    if restored.kept:
        ctx.out.note(f"new files, in no seal, stay: {path_list(restored.kept)}")
    record = {
        "paths": restored.paths,
        "removed": restored.removed,
        "trash": str(restored.trash) if restored.trash else None,
    }
    listed = [*restored.paths, *(f"{path} (removed)" for path in restored.removed)]
    names = f": {path_list(listed)}" if listed else ""
    ctx.out.done(
        f"Restored {count(len(listed), 'file')}{names}",
        record,
        COLUMNS,
        value=",".join([*restored.paths, *restored.removed]),
    )


def _take_back(ctx: Ctx, on_the_way: list[str]) -> None:
    """Withdraw edits that an earlier command began to send. `on_the_way` has their paths. For each, print
    whether the edit was withdrawn or had already arrived. If the server does not answer, print that it is not
    known whether they had arrived."""
    paths = path_list(on_the_way)
    try:
        with copy_for_pulling(ctx.obj) as copy:
            begin(copy)
            arrived = take_back(copy)
    except SvcError as error:
        ctx.out.note(
            f"an earlier command began to send {paths}. Whether that arrived is not known now "
            f"({error.detail or error.title}); if it did not, no later command sends it"
        )
        return
    if arrived:
        ctx.out.note(
            f"the edit of {path_list(arrived)} had already arrived at the server, and others may have it; "
            "to take it back there too, run: svc push"
        )
    taken = [path for path in on_the_way if path not in arrived]
    if taken:
        ctx.out.note(f"an earlier command began to send {path_list(taken)}; that was taken back")
