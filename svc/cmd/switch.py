"""`svc switch`."""

from __future__ import annotations

from typing import Annotated

import typer

from localstore.core.errors import UsageError
from svc.api.transport import BranchTransport
from svc.cmd.context import Ctx
from svc.cmd.working import count, linked, note_conflicts, note_merged, to_read
from svc.flows.pull import Mode
from svc.flows.switch import switch as switch_copy
from svc.out import Column, answers

COLUMNS = (Column("branch"), Column("seal", kind="id"), Column("changed"), Column("trash"))


@answers(COLUMNS)
def switch(
    ctx: Ctx,
    branch: Annotated[str, typer.Argument(help="An existing branch; svc repo branch makes one")],
    merge: Annotated[bool, typer.Option("--merge", help="Carry my edits onto the other branch")] = False,
    force: Annotated[bool, typer.Option("--force", help="Move my edits to the trash")] = False,
) -> None:
    """Turn this folder to another branch

    Refused over edits that were not pushed, unless --merge or --force says what becomes of them.

    Examples:
    svc switch parser
    svc switch main --merge
    """
    if force and merge:
        raise UsageError("--force drops your edits and --merge keeps them; use one of them")
    mode: Mode = "force" if force else "merge" if merge else "plain"
    _, link = linked(ctx)
    if branch == link.branch:
        record: dict[str, object] = {"branch": branch, "seal": None, "changed": [], "trash": None}
        ctx.out.done(f"Already on {branch}; svc pull brings its changes", record, COLUMNS, value=branch)
        return
    with to_read(ctx) as device:
        done = switch_copy(device, branch, BranchTransport(ctx.reader, link.repo_id, branch), mode)
    note_merged(ctx, done.pulled.merged)
    note_conflicts(ctx, done.pulled.conflicts)
    if done.trash:
        ctx.out.note(f"your edited files are in {done.trash}")
    record = {
        "branch": done.branch,
        "seal": done.pulled.seal,
        "changed": done.pulled.changed,
        "trash": str(done.trash) if done.trash else None,
    }
    sentence = f"On branch {done.branch}, {count(len(done.pulled.changed), 'file')} changed"
    ctx.out.done(sentence, record, COLUMNS, value=done.branch)
