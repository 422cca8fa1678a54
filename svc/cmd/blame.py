"""The command `svc blame`."""

from __future__ import annotations

from typing import Annotated

import msgspec
import typer

from svc.cmd.frame.context import Ctx
from svc.console import Column, answers
from svc.flows.history.blame import blame as lines_of
from svc.flows.history.blame import span_of, within

COLUMNS = (
    Column("line"),
    Column("seal_id", kind="id", spare=1),
    Column("author"),
    Column("sealed_at", kind="time", spare=2),
    Column("text", kind="code"),
)


@answers(COLUMNS)
def blame(
    ctx: Ctx,
    path: Annotated[str, typer.Argument(help="A text file")],
    ref: Annotated[
        str, typer.Option("--ref", metavar="REF", help="A branch, tag or seal id; else this folder's branch")
    ] = "",
    lines: Annotated[
        str, typer.Option("-L", "--lines", metavar="FIRST,LAST", help="Only these lines; LAST may be +COUNT")
    ] = "",
    first_parent: Annotated[
        bool, typer.Option("--first-parent", help="Lines that a merge brought come from the merge")
    ] = False,
) -> None:
    """Show who last changed each line of a file

    The newest seal of the branch is used, without unsealed edits. Lines that a merge or a squash brought in
    are attributed to the seals that wrote them. With --first-parent they are attributed to the merge.

    Examples:
    svc blame src/main.py
    svc blame src/main.py -L 40,60
    svc blame src/main.py -L 40,+5
    svc blame src/main.py --first-parent
    svc blame README.md --ref v1.0 --jq 'map(.author) | unique | .[]'
    """
    span = span_of(lines) if lines else None
    blamed_lines = lines_of(ctx.obj, path, ref, first_parent=first_parent)
    if span is not None:
        blamed_lines = within(blamed_lines, span, ctx.path_in_repo(path))
    ctx.out.rows(msgspec.to_builtins(blamed_lines), COLUMNS, empty=f"{ctx.path_in_repo(path)} is empty")
