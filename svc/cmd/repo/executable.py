"""The command `svc repo executable`."""

from __future__ import annotations

from typing import Annotated

import typer

from localstore.core.words import count
from svc.cmd.frame.context import Ctx
from svc.cmd.frame.working_copy import path_list
from svc.console import Column, answers
from svc.flows.executable import executable as look_at
from svc.flows.place.folder import copy_for_local_work

COLUMNS = (Column("listed"), Column("unlisted"), Column("written"))


@answers(COLUMNS)
def executable(
    ctx: Ctx,
    write: Annotated[
        bool, typer.Option("--write", help="Add those that are not listed to .svc.yaml")
    ] = False,
) -> None:
    """Show which files are executable here, and list them in .svc.yaml

    The server does not store executable bits. Files that are listed under `executable:` in .svc.yaml become
    executable when a clone, a pull or a restore writes them. The list has paths and patterns. The next push
    sends the changed .svc.yaml.

    Examples:
    svc repo executable
    svc repo executable --write
    """
    with copy_for_local_work(ctx.obj) as copy:
        listing = look_at(copy, write)
    if listing.unfit:
        ctx.out.note(f"not listed, because .svc.yaml cannot hold their names: {path_list(listing.unfit)}")
    if listing.unlisted and not listing.written:
        ctx.out.note(
            f"not listed in .svc.yaml: {path_list(listing.unlisted)}; "
            "to add them: svc repo executable --write"
        )
    record = {"listed": listing.listed, "unlisted": listing.unlisted, "written": listing.written}
    if listing.written:
        added = len(listing.unlisted) - len(listing.unfit)
        sentence = f"Listed {count(added, 'more file')} in .svc.yaml; svc push sends it"
    else:
        sentence = f"{count(len(listing.listed), 'executable file')} listed, {len(listing.unlisted)} not"
    ctx.out.done(sentence, record, COLUMNS, value=",".join(listing.unlisted))
