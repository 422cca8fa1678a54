"""`svc log`."""

from __future__ import annotations

from typing import Annotated

import typer

from localstore.core.encoding import is_hex_digest
from localstore.core.errors import NotFound
from localstore.core.model import Repo, SealSummary
from localstore.core.paths import is_inside
from localstore.link import read_state
from svc.cmd.context import Ctx
from svc.cmd.options import Limit
from svc.cmd.refs import head_of
from svc.out import Column, answers


def author(record: dict[str, object]) -> object:
    """Whose device sealed it, or whom an imported commit names."""
    provenance = record.get("provenance")
    if not isinstance(provenance, dict):
        return None
    return provenance.get("author") or provenance["who"]["handle"] or provenance["who"]["id"]


COLUMNS = (
    Column("id", kind="id"),
    Column("created_at", kind="time"),
    Column("author", author),
    Column("message", kind="line"),
)


@answers(COLUMNS, SealSummary)
def log(
    ctx: Ctx,
    ref: Annotated[
        str, typer.Argument(help="A branch, tag or seal id, or a file or folder here; else this branch")
    ] = "",
    path: Annotated[str, typer.Option("--path", metavar="PATH", help="Only seals that changed it")] = "",
    limit: Limit = 30,
) -> None:
    """List the seals of a branch, newest first

    A branch or tag goes before a file of the same name; --path is never taken for a branch.

    Examples:
    svc log
    svc log src/main.py
    svc log v1.0 -n 5
    svc log --path src/main.py --json id,message
    """
    repo = ctx.readable_repo
    start = ref or ctx.branch_of(repo)
    try:
        _list(ctx, repo, start, path, limit)
    except NotFound:
        if ref and not path and _is_here(ctx, ref):
            _list(ctx, repo, ctx.branch_of(repo), ref, limit)
        else:
            _list(ctx, repo, head_of(ctx, repo, start), path, limit)


def _list(ctx: Ctx, repo: Repo, start: str, path: str, limit: int) -> None:
    sha = start if is_hex_digest(start) else None
    where = ctx.path_in_repo(path) if path else None
    found = ctx.reader.history.commits(repo.id, ref=None if sha else start, sha=sha, path=where, limit=limit)
    empty = f"{start} has no seals yet; make one: svc push -m MESSAGE"
    ctx.out.rows(found, COLUMNS, SealSummary, empty=f"no seal of {start} changed {where}" if where else empty)


def _is_here(ctx: Ctx, typed: str) -> bool:
    """Whether the word names a file or folder that the linked folder has, or had at its last seal."""
    if ctx.obj.linked is None or ctx.obj.named is not None:
        return False
    if (ctx.obj.folder / typed).exists():
        return True
    where = ctx.path_in_repo(typed)
    return any(is_inside(path, where) for path in read_state(ctx.obj.linked[0]).tree)
