"""The command `svc log`."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Annotated, Any

import msgspec
import typer

from localstore.core.model.history import SealSummary
from localstore.core.model.repo import Repo
from svc.cmd.frame import changes
from svc.cmd.frame.context import Ctx
from svc.cmd.frame.options import Limit
from svc.console import Column, answers
from svc.flows.history.compare import changes_of_seal
from svc.flows.history.log import SealFilter, query_of, seals_of
from svc.flows.history.times import moment
from svc.flows.place.known_seals import remembering


def author(record: dict[str, object]) -> object:
    """Return the author of a seal. For an imported commit it is the author that the commit names, else the
    handle of the account that made the seal."""
    provenance = record.get("provenance")
    if not isinstance(provenance, dict):
        return None
    return provenance.get("author") or provenance["who"]["handle"] or provenance["who"]["id"]


def list_merged(record: dict[str, object]) -> list[str]:
    """Return the ids of the seals whose changes a merge brought in. [] if the seal is not a merge."""
    parents, provenance = record.get("parents"), record.get("provenance")
    sources = provenance.get("merged", []) if isinstance(provenance, dict) else []
    return [*(parents[1:] if isinstance(parents, list) else []), *sources]


COLUMNS = (
    Column("id", kind="id"),
    Column("created_at", kind="time"),
    Column("author", author),
    Column("message", kind="line"),
    Column("merged", list_merged, kind="id", spare=1),
)
FILES = Column("files")


@answers((*COLUMNS, FILES), SealSummary)
def log(
    ctx: Ctx,
    words: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[REF|REF..REF] [PATH]...", help="A branch, tag or seal, then files and folders"
        ),
    ] = None,
    path: Annotated[str, typer.Option("--path", metavar="PATH", help="Only seals that changed it")] = "",
    follow: Annotated[
        bool, typer.Option("--follow", help="Follow one file under its earlier names too")
    ] = False,
    patch: Annotated[bool, typer.Option("-p", "--patch", help="With each seal's changes")] = False,
    stat: Annotated[bool, typer.Option("--stat", help="With each seal's files and lines counted")] = False,
    by: Annotated[
        str, typer.Option("--author", metavar="TEXT", help="Only seals of whom: a part of the name")
    ] = "",
    since: Annotated[
        str, typer.Option("--since", "--after", metavar="TIME", help="Only seals from this time on")
    ] = "",
    until: Annotated[
        str, typer.Option("--until", "--before", metavar="TIME", help="Only seals up to this time")
    ] = "",
    oneline: Annotated[bool, typer.Option("--oneline", help="One line a seal: id and subject")] = False,
    first_parent: Annotated[
        bool, typer.Option("--first-parent", help="Without the seals that merges brought")
    ] = False,
    limit: Limit = 30,
) -> None:
    """List the seals of a branch, newest first

    A..B lists the seals that B has and A lacks. HEAD is the last seal of this folder, and HEAD~2 the seal two
    before it. A word that can mean both a REF (a branch, tag or seal) and a file means the REF. --path always
    names a file. If neither a REF nor a PATH is given, this folder's branch is listed. Patterns such as
    '*.py' name files of the newest seal.

    -p, --stat and --json files show the changed files of each seal. Without one of them the field `files` is
    null. A TIME is a day (2026-03-01, yesterday), a moment (2026-03-01T12:00) or how long ago ('3 days ago',
    2w). It is compared with the time at which a seal was made.

    Merged seals are listed, too, each before its ancestors. MERGED marks a merge, and --first-parent hides
    the merged seals. A squash or a rebase is listed in place of the seals that it replaced. With a PATH, a
    merge is listed only if its version of PATH differs from the versions in all its parents.

    Examples:
    svc log
    svc log src/main.py
    svc log v1.0 -n 5
    svc log main..parser
    svc log --first-parent
    svc log -p 3f2a91 -n 1
    svc log --author alice --since '2 weeks ago'
    svc log --follow src/main.py --oneline
    svc log --path src/main.py --json id,message
    """
    now = datetime.now().astimezone()
    which = SealFilter(
        by,
        moment(since, now, "--since") if since else None,
        moment(until, now, "--until", end=True) if until else None,
    )
    repo = ctx.readable_repo
    query = query_of(ctx.obj, repo, words or [], path, limit, follow, which, first_parent=first_parent)
    if query is None:
        seals: Iterator[SealSummary] = iter(())
        empty = f"{repo.full_name} has no seals yet; make one: svc push -m MESSAGE"
    else:
        seals = remembering(ctx.obj.home, repo.id, seals_of(ctx.obj, repo, query))
        name, paths = query.start.name, ", ".join(query.paths)
        empty = f"no seal of {name} changed {paths}" if paths else "no seals"
        if which:
            empty = f"no seal of {name} matches"
    if ctx.out.format.as_data:
        _rows(ctx, repo, seals, stat or patch or FILES.name in (ctx.out.format.fields or ()))
    elif oneline and not (stat or patch):
        ctx.out.text("".join(f"{seal.id[:12]} {changes.subject(seal.message)}\n" for seal in seals))
    elif stat or patch or oneline:
        ctx.out.text("".join(_blocks(ctx, repo, seals, patch, stat, oneline)), diff=True)
    else:
        ctx.out.rows(seals, COLUMNS, SealSummary, empty=empty)


def _rows(ctx: Ctx, repo: Repo, seals: Iterator[SealSummary], with_files: bool) -> None:
    if not with_files:
        ctx.out.rows(seals, COLUMNS, SealSummary)
        return

    def records() -> Iterator[dict[str, Any]]:
        for seal in seals:
            yield msgspec.to_builtins(seal) | {
                "files": msgspec.to_builtins(changes_of_seal(ctx.obj, repo, seal.id))
            }

    ctx.out.rows(records(), (*COLUMNS, FILES), SealSummary)


def _blocks(
    ctx: Ctx, repo: Repo, seals: Iterator[SealSummary], patch: bool, stat: bool, oneline: bool
) -> Iterator[str]:
    for at, seal in enumerate(seals):
        files = changes_of_seal(ctx.obj, repo, seal.id) if patch or stat else []
        if oneline:
            yield f"{seal.id[:12]} {changes.subject(seal.message)}\n"
        else:
            yield ("\n" if at else "") + changes.heading(seal, ctx.out) + ("\n" if patch or stat else "")
        if stat:
            yield changes.stat(files, ctx.out.width) + ("\n" if patch else "")
        if patch:
            yield changes.patches(files)
