"""The command `svc diff`."""

from __future__ import annotations

import os
import shlex
from collections.abc import Sequence
from typing import Annotated

import typer

from localstore.core.errors import UsageError
from localstore.core.model.history import ChangedFile
from svc.cmd.frame import changes
from svc.cmd.frame.context import Ctx
from svc.console import Column, answers
from svc.console.table import size
from svc.flows.history.compare import Span, compare_folder, compare_refs, span_of
from svc.flows.merge.resolve import unresolved_copies
from svc.flows.place.folder import copy_for_reading

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
    words: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[REF|REF..REF] [PATH]...", help="A branch, tag or seal, or two; then files and folders"
        ),
    ] = None,
    base: Annotated[
        str, typer.Option("--base", metavar="REF", help="Compare from this branch, tag or seal")
    ] = "",
    head: Annotated[
        str, typer.Option("--head", metavar="REF", help="Compare to this branch, tag or seal")
    ] = "",
    stat: Annotated[bool, typer.Option("--stat", help="Show line counts instead of the changes")] = False,
    name_only: Annotated[bool, typer.Option("--name-only", help="Only the paths")] = False,
    ignore_space: Annotated[
        bool, typer.Option("-w", "--ignore-all-space", help="But for white space in lines")
    ] = False,
) -> None:
    """Show what changed, line by line

    Compares this folder with its last seal, or with REF. A..B compares two branches, tags or seals directly.
    A...B, like --base A --head B, shows the changes of B since the common ancestor of A and B. HEAD is the
    last seal of this folder, and HEAD~1 the one before. A file that moved is shown as moved. With -w, files
    that differ only in white space are left out.

    Examples:
    svc diff
    svc diff --stat v1.0 src
    svc diff -w main..parser
    svc diff HEAD~1
    svc diff 3f2a..9c01 --name-only
    svc diff src --json path,status,additions,deletions
    svc diff --base main --head parser
    """
    if bool(base) != bool(head):
        raise UsageError("--base and --head belong together; give both, or neither for this folder's edits")
    if stat and name_only:
        raise UsageError("--stat counts lines and --name-only leaves them out; use one of them")
    typed = words or []
    span = None if head or not typed else span_of(ctx.obj, typed[0])
    if head:
        files = compare_refs(ctx.obj, Span(base, head, direct=False), typed, space=not ignore_space)
    elif span is not None:
        files = compare_refs(ctx.obj, span, typed[1:], space=not ignore_space)
    else:
        files = compare_folder(ctx.obj, typed, space=not ignore_space)
    if ctx.out.format.as_data:
        ctx.out.rows(files, COLUMNS, ChangedFile)
    elif name_only:
        ctx.out.text(changes.names(files))
    elif stat:
        ctx.out.text(changes.stat(files, ctx.out.width), diff=True)
    else:
        copies = {} if head or span is not None else _copies(ctx, files, typed)
        ctx.out.text(changes.patches(files, copies), diff=True)


def _copies(ctx: Ctx, files: Sequence[ChangedFile], typed: Sequence[str]) -> dict[str, str]:
    """Return what to show for each conflict copy among the new files. A conflict copy keeps one side of a
    conflict, so its text is mostly that of another file. The result maps the path of each copy to a line that
    is shown instead of its text. Copies that the user named in `typed` are left out."""
    added = [file.path for file in files if file.status == "added"]
    if not added:
        return {}
    with copy_for_reading(ctx.obj) as copy:
        copies = unresolved_copies(copy, added)
        for word in typed:
            if (ctx.obj.folder / word).exists():
                copies.pop(ctx.obj.path_in_repo(word), None)
        lines = {}
        for kept_as, path in copies.items():
            typed_so = shlex.quote(os.path.relpath(copy.folder / kept_as, ctx.obj.folder))
            info = copy.files.stat(kept_as)
            bulk = f" ({size(info.st_size)})" if info is not None else ""
            what = f"{kept_as}{bulk}, your version of {path}, which is in conflict"
            lines[kept_as] = f"{what}; to see it: svc diff {typed_so}"
        return lines
