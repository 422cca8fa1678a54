"""The commands `svc pr diff|checkout|versions|range-diff`."""

from __future__ import annotations

import re
from typing import Annotated

import typer

from localstore.core.errors import Conflict, NotFound, UsageError
from localstore.core.model import auth
from localstore.core.model import proposal as proposals
from localstore.core.model import ref as refs
from localstore.core.model import review as reviews
from localstore.core.model.base import PageQuery
from localstore.core.model.history import ChangedFile, CompareQuery
from localstore.core.model.proposal import Proposal, Version
from localstore.core.model.repo import Repo
from svc.cmd.diff import COLUMNS as FILES
from svc.cmd.frame import changes
from svc.cmd.frame.context import Ctx
from svc.cmd.pr.words import Named, Number, find
from svc.cmd.switch import COLUMNS as SWITCHED
from svc.cmd.switch import switch
from svc.console import Column, answers

VERSIONS = (
    Column("n"),
    Column("head", kind="id"),
    Column("base", kind="id"),
    Column("change_id", kind="id", spare=1),
    Column("by", lambda record: (record["by"] or {}).get("handle")),
    Column("at", kind="time"),
)
PAIRS = (
    Column("old"),
    Column("old_seal", kind="id"),
    Column("mark"),
    Column("new"),
    Column("new_seal", kind="id"),
    Column("message", kind="line"),
    Column("diff"),
)


@answers(FILES, ChangedFile)
def diff(
    ctx: Ctx,
    number: Number = "",
    stat: Annotated[bool, typer.Option("--stat", help="Show line counts instead of the changes")] = False,
    name_only: Annotated[bool, typer.Option("--name-only", help="Only the paths")] = False,
    since_review: Annotated[
        bool, typer.Option("--since-review", help="Only what changed since you reviewed it")
    ] = False,
) -> None:
    """Show what a proposal changes

    Shows what the newest version has changed since the branch separated from its base.

    Examples:
    svc pr diff
    svc pr diff 12 --stat
    svc pr diff 12 --since-review
    """
    if stat and name_only:
        raise UsageError("--stat counts lines and --name-only leaves them out; use one of them")
    repo, proposal = find(ctx, number, session=since_review)
    if since_review:
        query = CompareQuery(
            base=_last_reviewed_seal(ctx, repo, proposal), head=proposal.head_seal, direct=True
        )
    else:
        query = CompareQuery(base=proposal.base_seal, head=proposal.head_seal)
    files = ctx.reader.history.compare(repo.id, query).files
    if ctx.out.format.as_data:
        ctx.out.rows(files, FILES, ChangedFile)
    elif not files:
        since = "since your review" if since_review else f"beyond {proposal.base}"
        ctx.out.note(f"#{proposal.number} changes nothing {since}")
    elif name_only:
        ctx.out.text(changes.names(files))
    elif stat:
        ctx.out.text(changes.stat(files, ctx.out.width), diff=True)
    else:
        ctx.out.text(changes.patches(files), diff=True)


@answers(SWITCHED)
def checkout(
    ctx: Ctx,
    number: Named,
    merge: Annotated[bool, typer.Option("--merge", help="Merge my edits with the files there")] = False,
    force: Annotated[bool, typer.Option("--force", help="Move my edits to the trash")] = False,
) -> None:
    """Switch this folder to the branch of a proposal

    If the branch was deleted, or is in another repository than this folder's, the folder shows the proposal's
    newest version read-only, as after svc switch SEAL. To work on it, make a branch: svc repo branch NAME
    --from pr:12.

    Examples:
    svc pr checkout 12
    svc pr checkout parser --merge
    """
    _, link = ctx.obj.linked_folder()
    repo, proposal = find(ctx, number, session=False)
    mine = proposal.head_repo is not None and proposal.head_repo.id == link.repo_id
    if not mine and repo.id != link.repo_id:
        raise Conflict(
            f"#{proposal.number} of {repo.full_name} does not come from {link.repo}, to which this folder is "
            f"linked and which may lack its seals; run svc repo clone {repo.full_name}, and in that folder "
            f"svc pr checkout {proposal.number}"
        )
    target = proposal.head if mine else proposal.head_seal
    try:
        ctx.reader.send(refs.GET, id=link.repo_id, type="branch", name=proposal.head)
    except NotFound:
        target = proposal.head_seal
    switch(ctx, target, merge, force)


@answers(VERSIONS, Version)
def versions(ctx: Ctx, number: Number = "") -> None:
    """List the versions of a proposal

    Each seal that was the newest of the proposal's branch is a version. Two versions with the same change id
    make the same change, even if its lines have moved.

    Examples:
    svc pr versions 12
    svc pr versions 12 --json n,head,change_id
    """
    repo, proposal = find(ctx, number, session=False)
    ctx.out.rows(_versions(ctx, repo, proposal), VERSIONS, Version)


@answers(PAIRS)
def range_diff(
    ctx: Ctx,
    number: Named,
    span: Annotated[str, typer.Argument(metavar="[A..B]", help="Two versions; else the last two")] = "",
) -> None:
    """Compare two versions of a proposal, seal by seal

    Seals with the same change are marked =, even if the changed lines have moved. ! marks a changed seal and
    shows the difference, < marks a removed seal, and > a new one.

    Examples:
    svc pr range-diff 12
    svc pr range-diff 12 1..3
    """
    from svc.flows.proposal.range_diff import Work, pair_seals, steps

    repo, proposal = find(ctx, number, session=False)
    old, new = _span(span, proposal.version)
    by_number = {pair.n: pair for pair in _versions(ctx, repo, proposal)}
    for n in (old, new):
        if n not in by_number:
            raise NotFound(f"#{proposal.number} has no version {n}; see: svc pr versions {proposal.number}")
    work = Work()
    pairs = pair_seals(steps(ctx.obj, repo, by_number[old]), steps(ctx.obj, repo, by_number[new]), work)
    if work.short:
        ctx.out.note("so large changes were not all compared with each other; some > and < may be pairs")
    if ctx.out.format.as_data:
        import msgspec

        ctx.out.rows([msgspec.to_builtins(pair) for pair in pairs], PAIRS)
        return
    text = ""
    for pair in pairs:
        sides = (
            f"{n or '-'}: {(seal or '-' * 12)[:12]}"
            for n, seal in ((pair.old, pair.old_seal), (pair.new, pair.new_seal))
        )
        text += f"{f' {pair.mark} '.join(sides)} {changes.subject(pair.message)}\n"
        text += "".join(f"    {line}\n" for line in pair.diff.splitlines())
    ctx.out.text(text)


def _side(place: int | None, seal: str | None) -> str:
    return f"{place or '-'}: {(seal or '-' * 12)[:12]}"


def _versions(ctx: Ctx, repo: Repo, proposal: Proposal) -> list[Version]:
    return list(ctx.reader.items(proposals.VERSIONS, PageQuery(), id=repo.id, n=str(proposal.number)))


def _span(typed: str, last: int) -> tuple[int, int]:
    """Return the two versions (A, B) that `A..B` names. For `A..` return (A, `last`), and without a word the
    last two. Raises UsageError for anything else, Conflict if there is only one version."""
    if not typed:
        if last < 2:
            raise Conflict("this proposal has one version, and two are compared; see: svc pr versions")
        return last - 1, last
    match = re.fullmatch(r"([1-9][0-9]{0,8})\.\.\.?([1-9][0-9]{0,8})?", typed)
    if match is None:
        raise UsageError(f"{typed} names no two versions; say A..B, such as 1..2")
    return int(match[1]), int(match[2] or last)


def _last_reviewed_seal(ctx: Ctx, repo: Repo, proposal: Proposal) -> str:
    """Return the id of the seal that was the proposal's newest when the user last reviewed it. Raises
    NotFound if they never reviewed the proposal."""
    me, seal = ctx.api.send(auth.USER_INFO).user_id, None
    for review in ctx.api.items(reviews.LIST, PageQuery(), id=repo.id, n=str(proposal.number)):
        seal = review.seal_id if review.reviewer.id == me else seal
    if seal is None:
        raise NotFound(
            f"you have not reviewed #{proposal.number} yet; see all of it: svc pr diff {proposal.number}"
        )
    return seal
