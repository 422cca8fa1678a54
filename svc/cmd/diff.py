"""`svc diff`."""

from __future__ import annotations

from typing import Annotated

import typer

from localstore.core.errors import UsageError
from localstore.core.model import Compare
from svc.cmd.context import Ctx
from svc.cmd.working import to_look
from svc.flows.diff import diff as patches_of
from svc.out import Column

COLUMNS = (
    Column("path"),
    Column("status"),
    Column("additions"),
    Column("deletions"),
    Column("binary"),
    Column("patch"),
)


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
    svc diff src
    svc diff --base main --head parser
    svc diff --base v1.0 --head main --json path,additions
    """
    if bool(base) != bool(head):
        raise UsageError("--base and --head belong together; give both, or neither for this folder's edits")
    if head:
        _compared(ctx, base, head, paths or [])
        return
    with to_look(ctx) as device:
        patches = [
            patch.decode("utf-8", "replace") for patch in patches_of(device, _inside(ctx, paths or []))
        ]
    if ctx.out.format.as_data:
        raise UsageError(
            "the diff of this folder is a patch; --json goes with --base and --head, or svc status"
        )
    ctx.out.text("".join(patches), diff=True)


def _inside(ctx: Ctx, paths: list[str]) -> list[str]:
    return [path for path in map(ctx.path_in_repo, paths) if path != "."]


def _compared(ctx: Ctx, base: str, head: str, paths: list[str]) -> None:
    from localstore.core.paths import is_inside

    found: Compare = ctx.reader.history.compare(ctx.readable_repo.id, base, head)
    wanted = _inside(ctx, paths)
    files = [file for file in found.files if not wanted or any(is_inside(file.path, one) for one in wanted)]
    if ctx.out.format.as_data:
        ctx.out.rows(files, COLUMNS)
        return
    ctx.out.text("".join(file.patch or f"Binary files differ: {file.path}\n" for file in files), diff=True)
