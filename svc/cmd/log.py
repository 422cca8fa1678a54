"""`svc log`."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Annotated, Any

import msgspec
import typer

from localstore.core.encoding import is_hex_digest
from localstore.core.errors import NotFound, UsageError
from localstore.core.model import history
from localstore.core.model.history import CommitsQuery, SealSummary, TreeQuery
from localstore.core.model.repo import Repo
from localstore.core.paths import is_inside
from localstore.core.pathspec import GLOB, matching
from localstore.folder.link import read_state
from svc.cmd.frame import changes
from svc.cmd.frame.context import Ctx
from svc.cmd.frame.options import Limit
from svc.cmd.frame.refs import ResolvedRef, default_ref, find_ref, resolve_ref
from svc.console import Column, answers

GLOBBED_MAX = 100  # files that a pattern may match


def author(record: dict[str, object]) -> object:
    """The author of an imported commit, else the handle of the account that sealed."""
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
FILES = Column("files")


class Query(msgspec.Struct, frozen=True):
    """The seals to list: from `start` back, those that changed one of `paths` (all if empty), at most
    `limit`."""

    start: ResolvedRef
    paths: list[str]
    limit: int
    follow: bool = False


@answers((*COLUMNS, FILES), SealSummary)
def log(
    ctx: Ctx,
    words: Annotated[
        list[str] | None,
        typer.Argument(metavar="[REF] [PATH]...", help="A branch, tag or seal, then files and folders"),
    ] = None,
    path: Annotated[str, typer.Option("--path", metavar="PATH", help="Only seals that changed it")] = "",
    follow: Annotated[
        bool, typer.Option("--follow", help="Follow one file under its earlier names too")
    ] = False,
    patch: Annotated[bool, typer.Option("-p", "--patch", help="With each seal's changes")] = False,
    stat: Annotated[bool, typer.Option("--stat", help="With each seal's files and lines counted")] = False,
    oneline: Annotated[bool, typer.Option("--oneline", help="One line a seal: id and subject")] = False,
    limit: Limit = 30,
) -> None:
    """List the seals of a branch, newest first

    A branch, tag or seal goes before a file of the same name; --path is never taken for a branch. Without
    either, this folder's branch. Patterns such as '*.py' name files of the newest seal. --json files names
    what each seal changed, as -p and --stat do; without one of the three the field is null.

    Examples:
    svc log
    svc log src/main.py
    svc log v1.0 -n 5
    svc log -p 3f2a91 -n 1
    svc log --follow src/main.py --oneline
    svc log --path src/main.py --json id,message
    """
    repo = ctx.readable_repo
    wish = _query(ctx, repo, words or [], path, limit, follow)
    if wish is None:
        found: Iterator[SealSummary] = iter(())
        empty = f"{repo.full_name} has no seals yet; make one: svc push -m MESSAGE"
    else:
        found = _seals(ctx, repo, wish)
        empty = f"no seal of {wish.start.name} changed {', '.join(wish.paths)}" if wish.paths else "no seals"
    if ctx.out.format.as_data:
        _rows(ctx, repo, found, stat or patch or FILES.name in (ctx.out.format.fields or ()))
    elif oneline and not (stat or patch):
        ctx.out.text("".join(f"{one.id[:12]} {changes.subject(one.message)}\n" for one in found))
    elif stat or patch or oneline:
        ctx.out.text("".join(_blocks(ctx, repo, found, patch, stat, oneline)), diff=True)
    else:
        ctx.out.rows(found, COLUMNS, SealSummary, empty=empty)


def _rows(ctx: Ctx, repo: Repo, found: Iterator[SealSummary], with_files: bool) -> None:
    if not with_files:
        ctx.out.rows(found, COLUMNS, SealSummary)
        return

    def records() -> Iterator[dict[str, Any]]:
        for one in found:
            yield msgspec.to_builtins(one) | {
                "files": msgspec.to_builtins(changes.of_seal(ctx, repo, one.id))
            }

    ctx.out.rows(records(), (*COLUMNS, FILES), SealSummary)


def _blocks(
    ctx: Ctx, repo: Repo, found: Iterator[SealSummary], patch: bool, stat: bool, oneline: bool
) -> Iterator[str]:
    for at, one in enumerate(found):
        files = changes.of_seal(ctx, repo, one.id) if patch or stat else []
        if oneline:
            yield f"{one.id[:12]} {changes.subject(one.message)}\n"
        else:
            yield ("\n" if at else "") + changes.heading(one, ctx.out) + ("\n" if patch or stat else "")
        if stat:
            yield changes.stat(files, ctx.out.width) + ("\n" if patch else "")
        if patch:
            yield changes.patches(files)


# --- which seals


def _query(ctx: Ctx, repo: Repo, words: list[str], path: str, limit: int, follow: bool) -> Query | None:
    """The query of the arguments; None if the branch has no seal."""
    start = _named(ctx, repo, words[0]) if words else None
    typed = [*(words[1:] if start else words), *([path] if path else [])]
    if start is None:
        start = resolve_ref(ctx, repo, default_ref(ctx, repo))
    if start.head is None:
        return None
    paths = (
        [one for one in map(ctx.path_in_repo, typed) if one != "."]
        if "." not in map(ctx.path_in_repo, typed)
        else []
    )
    if follow and (len(paths) != 1 or GLOB.search(paths[0])):
        raise UsageError("--follow takes one file: svc log --follow PATH")
    return Query(start, _expanded(ctx, repo, start.head, paths), limit, follow)


def _named(ctx: Ctx, repo: Repo, word: str) -> ResolvedRef | None:
    """The ref that the first word names; None if it is a path. Raises NotFound if it is neither."""
    found = find_ref(ctx, repo, word)
    here = _is_here(ctx, word)
    if found is None and not here and not _is_path(ctx, word):
        resolve_ref(ctx, repo, word)
    shortened = found is not None and found.kind == "seal" and not is_hex_digest(word)
    return None if shortened and here else found


def _is_path(ctx: Ctx, word: str) -> bool:
    """Whether the word can only be a path."""
    return ctx.obj.linked is not None and (word.startswith(".") or "/" in word or bool(GLOB.search(word)))


def _is_here(ctx: Ctx, typed: str) -> bool:
    """Whether the linked folder or its last seal has this file or folder."""
    if ctx.obj.linked is None or ctx.obj.named_repo is not None:
        return False
    if (ctx.obj.folder / typed).exists():
        return True
    where = ctx.path_in_repo(typed)
    return any(is_inside(path, where) for path in read_state(ctx.obj.linked[0]).tree)


def _expanded(ctx: Ctx, repo: Repo, head: str, paths: list[str]) -> list[str]:
    """The paths, with patterns replaced by the matching files of the seal."""
    patterns = [path for path in paths if GLOB.search(path)]
    if not patterns:
        return paths
    tree = ctx.reader.send(history.TREE, query=TreeQuery(recursive=True), id=repo.id, sha=head)
    found = [one.path for one in tree.entries if matching(one.path, patterns)]
    if not found:
        raise NotFound(f"no file of the seal {head[:12]} matches {', '.join(patterns)}")
    if len(found) > GLOBBED_MAX:
        raise UsageError(
            f"{', '.join(patterns)} names {len(found)} files, over {GLOBBED_MAX}; name a folder instead"
        )
    return [*(path for path in paths if path not in patterns), *found]


def _seals(ctx: Ctx, repo: Repo, wish: Query) -> Iterator[SealSummary]:
    """The seals of the query; for several paths, those that changed any of them, in history order."""
    head = wish.start.head

    def walk(path: str | None, limit: int | None) -> Iterator[SealSummary]:
        return ctx.reader.items(
            history.COMMITS,
            CommitsQuery(sha=head, path=path, follow=wish.follow),
            limit=limit,
            id=repo.id,
        )

    if len(wish.paths) < 2:
        return walk(wish.paths[0] if wish.paths else None, wish.limit)
    touching = {one.id for path in wish.paths for one in walk(path, wish.limit)}
    left = len(touching)

    def joined() -> Iterator[SealSummary]:
        nonlocal left
        for one in walk(None, None):
            if one.id in touching:
                left -= 1
                yield one
            if not left:
                return

    return islice(joined() if touching else iter(()), wish.limit)
