"""`svc diff`."""

from __future__ import annotations

from typing import Annotated

import typer

from localstore.core.errors import NotFound, UsageError
from localstore.core.model import ChangedFile, Compare
from svc.cmd.context import Ctx
from svc.cmd.refs import head_of
from svc.cmd.working import to_look
from svc.flows.diff import diff as diff_folder
from svc.out import Column, answers

COLUMNS = (
    Column("path"),
    Column("status"),
    Column("additions"),
    Column("deletions"),
    Column("binary"),
    Column("patch"),
)


@answers(COLUMNS, ChangedFile)
def diff(
    ctx: Ctx,
    paths: Annotated[
        list[str] | None, typer.Argument(metavar="[PATH]...", help="Only these files and folders")
    ] = None,
    base: Annotated[
        str, typer.Option("--base", metavar="REF", help="Compare from this branch, tag or seal")
    ] = "",
    head: Annotated[
        str, typer.Option("--head", metavar="REF", help="… to this one, instead of this folder")
    ] = "",
) -> None:
    """Show what changed, line by line

    This folder against its last seal. With --base and --head two branches, tags or seals: what the head has
    since the two parted.

    Examples:
    svc diff
    svc diff src --json path,status,additions,deletions
    svc diff --base main --head parser
    svc diff --base v1.0 --head main --json path,additions
    """
    if bool(base) != bool(head):
        raise UsageError("--base and --head belong together; give both, or neither for this folder's edits")
    if head:
        _compared(ctx, base, head, paths or [])
        return
    with to_look(ctx) as device:
        files = list(diff_folder(device, _inside(ctx, paths or [])))
    _show(ctx, files)


def _inside(ctx: Ctx, paths: list[str]) -> list[str]:
    return [path for path in map(ctx.path_in_repo, paths) if path != "."]


def _compared(ctx: Ctx, base: str, head: str, paths: list[str]) -> None:
    from localstore.core.paths import is_inside

    repo = ctx.readable_repo
    try:
        found: Compare = ctx.reader.history.compare(repo.id, base, head)
    except NotFound:  # one of them is shortened, or names nothing
        sides = [head_of(ctx, repo, one) for one in (base, head)]
        found = ctx.reader.history.compare(repo.id, *sides)
    wanted = _inside(ctx, paths)
    files = [file for file in found.files if not wanted or any(is_inside(file.path, one) for one in wanted)]
    _show(ctx, files)


def _show(ctx: Ctx, files: list[ChangedFile]) -> None:
    if ctx.out.format.as_data:
        ctx.out.rows(files, COLUMNS, ChangedFile)
        return
    ctx.out.text("".join(file.patch or _without_patch(file) for file in files), diff=True)


def _without_patch(file: ChangedFile) -> str:
    return f"{'Binary' if file.binary else 'Large'} files differ: {file.path}\n"
