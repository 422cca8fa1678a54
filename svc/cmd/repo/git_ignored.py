"""The command `svc repo git-ignored`."""

from __future__ import annotations

from typing import Annotated

import typer

from localstore.core.paths import terminal_safe
from localstore.core.words import count
from svc.cmd.frame.context import Ctx
from svc.console import Column, answers
from svc.flows.git_ignored import git_ignored as look_at
from svc.flows.place.folder import copy_for_local_work

COLUMNS = (Column("path", kind="name"), Column("rule", kind="line"), Column("line"))


@answers(COLUMNS)
def git_ignored(
    ctx: Ctx,
    write: Annotated[bool, typer.Option("--write", help="Add the lines to .svcignore")] = False,
) -> None:
    """Show new files that git ignores for you alone, and leave them out

    On this machine only, git also ignores what is listed in .git/info/exclude and in the file that git's
    setting core.excludesFile names. svc does not use these rules. So svc push asks before it sends these
    files, and svc watch does not send them. --write adds a line for each to .svcignore, which everybody who
    has the repository sees.

    Examples:
    svc repo git-ignored
    svc repo git-ignored --write
    """
    with copy_for_local_work(ctx.obj) as copy:
        listing = look_at(copy, write)
    rows = [
        {"path": terminal_safe(file.path), "rule": file.rule, "line": terminal_safe(file.line)}
        for file in listing.files
    ]
    ctx.out.rows(rows, COLUMNS, empty="git ignores no new file for you alone")
    if listing.written:
        ctx.out.note(f"Added {count(len(listing.lines), 'line')} to .svcignore; svc push sends it")
    elif rows:
        ctx.out.note("to leave them out: svc repo git-ignored --write; svc push asks before it sends them")
