"""The command `svc repo clone`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from localstore.core.errors import EXIT_FAILED, UsageError
from localstore.core.words import count
from svc.cmd.frame.context import Ctx
from svc.cmd.frame.working_copy import note_conflicts, note_skipped
from svc.console import Column, answers
from svc.console.table import size
from svc.flows.place.refs import resolve_ref
from svc.flows.place.target import clone_into

COLUMNS = (
    Column("repo"),
    Column("branch"),
    Column("folder"),
    Column("seal", kind="id"),
    Column("files"),
    Column("bytes", kind="size"),
    Column("reused", kind="size"),
)


@answers(COLUMNS)
def clone(
    ctx: Ctx,
    repository: Annotated[str, typer.Argument(metavar="[OWNER/NAME]", help="The repository; or -R")] = "",
    folder: Annotated[
        str, typer.Argument(metavar="[FOLDER]", help="The new folder; else named like the repository")
    ] = "",
    branch: Annotated[
        str,
        typer.Option("-b", "--branch", metavar="REF", help="A branch, tag or seal; else the default branch"),
    ] = "",
) -> None:
    """Copy a repository into a new folder

    Copies the last seal of the branch, and verifies every seal and file. With -b TAG or -b SEAL, that seal is
    copied read-only. Parts of large files that this machine already has are not fetched. To continue an
    interrupted clone, run the command again. If one of your files is in the way of a file of the clone, the
    command exits with 1; svc resolve ends such a conflict. Public repositories need no session. The address
    for git clone also works.

    Examples:
    svc repo clone alice/notes
    svc repo clone https://node.example/alice/notes.git
    svc repo clone alice/notes ~/notes-parser -b parser
    svc repo clone alice/notes notes-1.0 -b v1.0
    """
    run = ctx.obj
    run.set_repository(repository)
    if run.named_repo is None:
        raise UsageError("which repository? svc repo clone OWNER/NAME")
    repo = ctx.readable_repo
    at = resolve_ref(ctx.obj, repo, branch or repo.default_branch)
    shown_seal = at.head if at.kind != "branch" else None
    chosen = at.name if shown_seal is None else repo.default_branch
    target = run.below(folder or repo.name)
    ctx.out.goes_on = True
    cloned = clone_into(ctx.obj, repo, chosen, Path(target), shown_seal)
    if shown_seal:
        ctx.out.note(
            f"the folder shows the seal {shown_seal[:12]}, to be read only; svc switch {chosen} leaves it"
        )
    note_skipped(ctx, cloned.skipped)
    note_conflicts(ctx, cloned.conflicts)
    record = {
        "repo": repo.full_name,
        "branch": chosen if shown_seal is None else None,
        "folder": str(cloned.folder),
        "seal": cloned.seal,
        "files": cloned.files,
        "bytes": cloned.bytes,
        "reused": cloned.reused,
    }
    what = f"{count(cloned.files, 'file')}, {size(cloned.bytes)}" if cloned.seal else "no seal yet"
    if cloned.reused:
        what += f"; {size(cloned.reused)} of them were on this machine and not fetched"
    ctx.out.done(f"Cloned {repo.full_name} into {target}: {what}", record, COLUMNS, value=str(target))
    if cloned.conflicts:
        ctx.exit(EXIT_FAILED)
