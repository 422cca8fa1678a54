"""`svc repo clone`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from localstore.core.errors import UsageError
from localstore.link import RepoLink
from svc.api.transport import BranchTransport
from svc.cmd.context import Ctx, read_address
from svc.cmd.working import count, key_for, note_conflicts, note_skipped
from svc.flows.clone import clone as clone_branch
from svc.out import Column
from svc.out.table import size

COLUMNS = (
    Column("repo"),
    Column("branch"),
    Column("folder"),
    Column("seal", kind="id"),
    Column("files"),
    Column("bytes", kind="size"),
)


def clone(
    ctx: Ctx,
    repository: Annotated[str, typer.Argument(metavar="[OWNER/NAME]", help="The repository; or -R")] = "",
    folder: Annotated[str, typer.Argument(metavar="[FOLDER]", help="Else a new folder named like it")] = "",
    branch: Annotated[
        str, typer.Option("-b", "--branch", metavar="BRANCH", help="Else the default branch")
    ] = "",
) -> None:
    """Copy a repository into a new folder

    The last seal of the branch, every seal and file verified. An interrupted clone goes on where it stopped.
    Public repositories need no session.

    Examples:
    svc repo clone alice/notes
    svc repo clone alice/notes ~/notes-parser -b parser
    """
    run = ctx.obj
    if repository:
        run.named = read_address(repository)
    if run.named is None:
        raise UsageError("which repository? svc repo clone OWNER/NAME")
    repo = ctx.readable_repo
    chosen = branch or repo.default_branch
    target = run.folder / (folder or repo.name)
    link = RepoLink(
        server=run.server, repo_id=repo.id, repo=repo.full_name, branch=chosen, class_=repo.class_
    )
    transport = BranchTransport(ctx.reader, repo.id, chosen)
    transport.head()  # NotFound before anything is written
    done = clone_branch(transport, run.home, link, Path(target), key_for(ctx, repo), ctx.out.meter)
    note_skipped(ctx, done.skipped)
    note_conflicts(ctx, done.conflicts)
    record = {
        "repo": repo.full_name,
        "branch": chosen,
        "folder": str(done.folder),
        "seal": done.seal,
        "files": done.files,
        "bytes": done.bytes,
    }
    what = f"{count(done.files, 'file')}, {size(done.bytes)}" if done.seal else "no seal yet"
    ctx.out.done(f"Cloned {repo.full_name} into {target}: {what}", record, COLUMNS, value=str(target))
