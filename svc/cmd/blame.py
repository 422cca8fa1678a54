"""`svc blame`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any

import typer

from localstore.core.errors import NotFound, ServerMisbehaved
from localstore.core.limits import TEXT_FILE
from localstore.core.model import history
from localstore.core.model.history import Blame
from svc.cmd.frame.context import Ctx
from svc.cmd.frame.refs import default_ref, seal_of
from svc.console import Column, answers

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
) -> None:
    """Show who last changed each line of a file

    As of the last seal of the branch; edits that are not sealed yet do not show.

    Examples:
    svc blame src/main.py
    svc blame README.md --ref v1.0 --jq 'group_by(.author) | map({(.[0].author): length}) | add'
    """
    repo = ctx.readable_repo
    seal = seal_of(ctx, repo, ref or default_ref(ctx, repo))
    where = ctx.path_in_repo(path)
    try:
        found = ctx.reader.send(history.BLAME, id=repo.id, seal_id=seal, path=where)
        text = ctx.reader.history.raw(repo.id, seal, where, TEXT_FILE)
    except NotFound:
        raise NotFound(
            f"{where} is not in the seal {seal[:12]}; svc status tells whether it waits for a push, "
            f"svc log --path {where} whether it was ever there"
        ) from None
    ctx.out.rows(_lines(found, text), COLUMNS, empty=f"{where} is empty")


def _lines(found: Blame, text: bytes) -> Iterator[dict[str, Any]]:
    lines = text.decode("utf-8", "replace").split("\n")
    for part in found.ranges:
        if not 1 <= part.start <= part.end <= len(lines):
            raise ServerMisbehaved("the server blames lines that the file does not have")
        for number in range(part.start, part.end + 1):
            yield {
                "line": number,
                "seal_id": part.seal_id,
                "author": part.who.handle or part.who.id,
                "sealed_at": part.sealed_at,
                "text": lines[number - 1],
            }
