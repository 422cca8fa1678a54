"""The command `svc revert`."""

from __future__ import annotations

from shlex import quote
from typing import Annotated

import typer

from localstore.core.words import count
from svc.cmd.frame.context import Ctx
from svc.cmd.frame.working_copy import path_list
from svc.console import Column, answers
from svc.flows.place.folder import copy_for_local_work
from svc.flows.place.refs import seal_of
from svc.flows.revert import revert as revert_seal

COLUMNS = (
    Column("seal", kind="id"),
    Column("written"),
    Column("removed"),
    Column("message"),
    Column("trash"),
)


@answers(COLUMNS)
def revert(
    ctx: Ctx, seal: Annotated[str, typer.Argument(metavar="SEAL", help="A seal, or a tag or branch at it")]
) -> None:
    """Undo the changes of one seal, as edits of this folder

    Later changes stay. Texts are merged by lines and words. If later changes overlap, the command names the
    files and changes nothing. The files that are replaced move to a trash folder. Check the result, then
    push.

    Examples:
    svc revert 3f2a91
    """
    with copy_for_local_work(ctx.obj) as copy:
        seal_id = seal_of(ctx.obj, ctx.reader.repo.find_linked(copy.repo.repo_id, copy.repo.repo), seal)
        done = revert_seal(copy, seal_id)
    if done.trash:
        ctx.out.note(f"the replaced files are in {done.trash}")
    message = f'Revert "{done.subject}"'
    record = {
        "seal": done.seal,
        "written": done.written,
        "removed": done.removed,
        "message": message,
        "trash": str(done.trash) if done.trash else None,
    }
    paths = [*done.written, *(f"{path} (removed)" for path in done.removed)]
    if not paths:
        ctx.out.done(f"Nothing of {seal_id[:12]} is left here to revert", record, COLUMNS, value=done.seal)
        return
    ctx.out.note(f"to seal it: svc push -m {quote(message)}")
    sentence = f"Reverted {seal_id[:12]} in {count(len(paths), 'file')}: {path_list(paths)}"
    ctx.out.done(sentence, record, COLUMNS, value=done.seal)
