"""The command `svc repo init`."""

from __future__ import annotations

from typing import Annotated

import typer

from localstore.core.errors import NotFound, UsageError
from localstore.core.words import count
from localstore.folder.link import RepoLink
from svc.api.sync_transport import BranchTransport
from svc.cmd.frame.context import Ctx
from svc.cmd.frame.working_copy import path_list
from svc.console import Column, answers
from svc.flows.init import init as link_folder

COLUMNS = (
    Column("repo"),
    Column("branch"),
    Column("folder"),
    Column("base", kind="id"),
    Column("head", kind="id"),
    Column("recognised"),
    Column("unknown"),
)


@answers(COLUMNS)
def init(
    ctx: Ctx,
    repository: Annotated[str, typer.Argument(metavar="[OWNER/NAME]", help="The repository; or -R")] = "",
    branch: Annotated[
        str, typer.Option("-b", "--branch", metavar="BRANCH", help="Else the default branch")
    ] = "",
) -> None:
    """Link this folder to a repository

    Nothing in the folder changes. Files that equal a current or earlier version on the branch are recognised;
    svc pull and svc push then bring the folder and the branch together. The repository must exist: svc repo
    create makes one. Linking again is allowed.

    Examples:
    svc repo init alice/notes
    svc repo init alice/notes -b parser
    """
    run = ctx.obj
    run.set_repository(repository)
    if run.named_repo is None:
        raise UsageError("which repository? svc repo init OWNER/NAME")
    try:
        repo = ctx.readable_repo
    except NotFound as error:
        raise NotFound(
            f"{error.detail}; to make it, run first: svc repo create {run.named_repo.name}"
        ) from None
    chosen = branch or repo.default_branch
    link = RepoLink(
        server=run.server, repo_id=repo.id, repo=repo.full_name, branch=chosen, class_=repo.class_
    )
    transport = BranchTransport(ctx.reader, repo.id, chosen)
    transport.head()  # NotFound before anything is written
    done = link_folder(transport, run.home, link, run.folder, kind=repo.kind)
    if done.unknown:
        ctx.out.note(f"not recognised, kept beside the branch's on pull: {path_list(done.unknown)}")
    record = {
        "repo": repo.full_name,
        "branch": chosen,
        "folder": str(done.folder),
        "base": done.base,
        "head": done.head,
        "recognised": done.recognised,
        "unknown": done.unknown,
    }
    recognised = f"; {count(done.recognised, 'file')} recognised" if done.recognised else ""
    ctx.out.done(
        f"Linked {done.folder} to {repo.full_name}, branch {chosen}{recognised}",
        record,
        COLUMNS,
        value=repo.full_name,
    )
