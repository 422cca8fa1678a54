"""`svc diff`."""

from __future__ import annotations

from typing import Annotated

import typer

from localstore.core.errors import UsageError
from localstore.core.model import history
from localstore.core.model.history import ChangedFile, CompareQuery
from localstore.core.model.repo import Repo
from localstore.core.pathspec import matching, without_match
from svc.cmd.frame import changes
from svc.cmd.frame.context import Ctx
from svc.cmd.frame.refs import default_ref, find_ref, seal_of
from svc.cmd.frame.working_copy import copy_for_reading
from svc.console import Column, answers
from svc.flows.diff import diff as diff_folder

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
) -> None:
    """Show what changed, line by line

    This folder against its last seal, or against REF. A..B compares two branches, tags or seals as they are;
    A...B, as --base A --head B, shows what B has since the two parted. A file that moved is shown as moved.

    Examples:
    svc diff
    svc diff --stat v1.0 src
    svc diff 3f2a..9c01 --name-only
    svc diff src --json path,status,additions,deletions
    svc diff --base main --head parser
    """
    if bool(base) != bool(head):
        raise UsageError("--base and --head belong together; give both, or neither for this folder's edits")
    if stat and name_only:
        raise UsageError("--stat counts lines and --name-only leaves them out; use one of them")
    typed = words or []
    span = None if head or not typed else _span(ctx, typed[0])
    if head:
        files = _compared(ctx, (base, head, False), typed)
    elif span is not None:
        files = _compared(ctx, span, typed[1:])
    else:
        files = _of_folder(ctx, typed)
    if ctx.out.format.as_data:
        ctx.out.rows(files, COLUMNS, ChangedFile)
    elif name_only:
        ctx.out.text(changes.names(files))
    elif stat:
        ctx.out.text(changes.stat(files, ctx.out.width), diff=True)
    else:
        ctx.out.text(changes.patches(files), diff=True)


def _span(ctx: Ctx, word: str) -> tuple[str, str, bool] | None:
    """(left, right, direct) of `A..B` or `A...B`; None for a path."""
    if ".." not in word or "../" in word or word.endswith("/..") or (ctx.obj.folder / word).exists():
        return None
    left, _, right = word.partition("..")
    direct = not right.startswith(".")
    return left, right.removeprefix("."), direct


def _of_folder(ctx: Ctx, typed: list[str]) -> list[ChangedFile]:
    """The changes of the folder against its last seal, or the ref that the first word names."""
    seal: str | None = None
    if typed and ctx.obj.linked is not None and not (ctx.obj.folder / typed[0]).exists():
        repo = ctx.reader.repo.linked(ctx.obj.linked[1].repo_id, ctx.obj.linked[1].repo)
        found = find_ref(ctx, repo, typed[0]) if _maybe_ref(ctx, typed[0]) else None
        if found is not None:
            seal, typed = seal_of(ctx, repo, typed[0]), typed[1:]
    with copy_for_reading(ctx) as copy:
        return list(diff_folder(copy, [ctx.path_in_repo(path) for path in typed], seal))


def _maybe_ref(ctx: Ctx, word: str) -> bool:
    """Whether the word may be a ref, so that the server must be asked: the last seal has no such path."""
    from localstore.folder.link import read_state

    assert ctx.obj.linked is not None  # noqa: S101 - the caller looked
    try:
        where = ctx.path_in_repo(word)
    except UsageError:
        return False
    return bool(without_match(read_state(ctx.obj.linked[0]).tree, [where]))


def _compared(ctx: Ctx, span: tuple[str, str, bool], paths: list[str]) -> list[ChangedFile]:
    repo = ctx.readable_repo
    base, head = (_end(ctx, repo, one) for one in span[:2])
    found = ctx.reader.send(
        history.COMPARE, query=CompareQuery(base=base, head=head, direct=span[2]), id=repo.id
    )
    wanted = [ctx.path_in_repo(path) for path in paths]
    if not wanted:
        return found.files
    return [file for file in found.files if _wanted(file, wanted)]


def _end(ctx: Ctx, repo: Repo, name: str) -> str:
    return seal_of(ctx, repo, name or default_ref(ctx, repo))


def _wanted(file: ChangedFile, specs: list[str]) -> bool:
    return any(matching(path, specs) for path in (file.path, file.old_path) if path is not None)
