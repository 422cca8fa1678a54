"""`svc restore`."""

from __future__ import annotations

from typing import Annotated

import typer

from svc.cmd.context import Ctx
from svc.cmd.refs import head_of
from svc.cmd.working import count, named, to_look
from svc.flows.restore import restore as restore_files
from svc.out import Column, answers

COLUMNS = (Column("paths"), Column("trash"))


@answers(COLUMNS)
def restore(
    ctx: Ctx,
    paths: Annotated[list[str], typer.Argument(metavar="PATH...", help="Files or folders")],
    source: Annotated[
        str, typer.Option("--source", metavar="REF", help="A branch, tag or seal; else the last seal here")
    ] = "",
) -> None:
    """Bring files back as the last seal has them

    What they held moves to a trash folder, which is named. To the branch this is an edit as any other.

    Examples:
    svc restore src/main.py
    svc restore docs --source v1.0
    """
    wanted = [ctx.path_in_repo(path) for path in paths]
    with to_look(ctx) as device:
        seal = (
            head_of(ctx, ctx.reader.repo.linked(device.repo.repo_id, device.repo.repo), source)
            if source
            else None
        )
        done = restore_files(device, wanted, seal)
    if done.trash:
        ctx.out.note(f"what they held is in {done.trash}")
    record = {"paths": done.paths, "trash": str(done.trash) if done.trash else None}
    listed = f": {named(done.paths)}" if done.paths else ""
    ctx.out.done(
        f"Restored {count(len(done.paths), 'file')}{listed}", record, COLUMNS, value=",".join(done.paths)
    )
