"""The commands `svc pr merge|update-branch`."""

from __future__ import annotations

import re
from typing import Annotated

import typer

from localstore.core.errors import NotFound, UsageError
from localstore.core.model import merge as merges
from localstore.core.model import ref as refs
from localstore.core.model.merge import (
    MergeFinalizeRequest,
    MergePrepareRequest,
    PreparedMerge,
    RequestedStrategy,
    UpdateFinalizeRequest,
    UpdatePrepareRequest,
)
from localstore.core.model.proposal import Proposal
from localstore.core.model.repo import Repo
from localstore.core.model.review import HeadMoved
from localstore.core.words import count, reasons_to_wait
from svc.cmd.frame.context import Ctx
from svc.cmd.frame.deleting import confirm_unheld
from svc.cmd.frame.options import DryRun
from svc.cmd.frame.working_copy import path_list
from svc.cmd.pr.words import Number, find, format_title
from svc.console import Column, answers
from svc.flows.proposal.merging import MergeOptions, signatures
from svc.flows.sign_in.register_device import signing_key

COLUMNS = (
    Column("number"),
    Column("strategy"),
    Column("base"),
    Column("seal", kind="id"),
    Column("seals"),
    Column("changed"),
    Column("merged"),
    Column("branch_deleted"),
    Column("auto"),
)
HOW = {
    "fast_forward": "moved forward",
    "squash": "squashed",
    "rebase": "rebased",
    "merge": "merged with two parents",
}
REPLACES = ("squash", "rebase")  # ways that make other seals, so that the base does not lead to the branch's
HEAD_DIGITS = 8
SEAL_ID = re.compile(rf"[0-9a-f]{{{HEAD_DIGITS},64}}")
Message = Annotated[str, typer.Option("-m", "--message", metavar="MSG", help="What the seal says")]


@answers(COLUMNS)
def merge(
    ctx: Ctx,
    number: Number = "",
    squash: Annotated[bool, typer.Option("--squash", "-s", help="As one seal")] = False,
    rebase: Annotated[bool, typer.Option("--rebase", "-r", help="Its seals again, on the base")] = False,
    merge: Annotated[bool, typer.Option("--merge", help="As a seal with two parents")] = False,
    delete_branch: Annotated[
        bool, typer.Option("--delete-branch", "-d", help="Delete its branch afterwards")
    ] = False,
    message: Message = "",
    head: Annotated[
        str, typer.Option("--head", metavar="SEAL", help="Only if this seal is its head; at least 8 digits")
    ] = "",
    auto: Annotated[bool, typer.Option("--auto", help="As soon as nothing blocks it")] = False,
    disable_auto: Annotated[bool, typer.Option("--disable-auto", help="No longer merge by --auto")] = False,
    dry_run: DryRun = False,
) -> None:
    """Merge a proposal into its base

    Without an option the base moves forward to the branch. If the base has seals that the branch lacks,
    choose one of three ways. --squash makes one seal of the branch. --rebase makes the branch's seals again,
    one by one, on top of the base. --merge makes a seal with two parents, if the two sides changed different
    files. This machine computes the merge itself and signs it. Files that both sides changed are merged by
    lines. If that is not possible, the command names the files and merges nothing.

    With --auto the merge is signed now, although the proposal still waits for approvals, checks or its
    author. It lands when nothing blocks it any more. If one of the branches moves first, the merge is dropped
    and your inbox asks you again.

    With --head nothing is merged if another seal has become the newest of the branch, because somebody pushed
    meanwhile.

    --delete-branch with --squash or --rebase can leave the seals of the branch on no other branch. The
    command then asks, and prints the id with which the branch can be restored.

    Examples:
    svc pr merge 12
    svc pr merge 12 --squash --auto
    svc pr merge 12 --squash --delete-branch -m "Parse dates"
    svc pr merge 12 --rebase --dry-run
    svc pr merge 12 --head 3f2a9c41
    """
    if squash + rebase + merge > 1:
        raise UsageError("--squash, --rebase and --merge are three ways; use one of them")
    if rebase and message:
        raise UsageError("a rebase keeps the messages of its seals; omit -m")
    if auto + disable_auto + dry_run > 1 or (disable_auto and (squash or rebase or merge or delete_branch)):
        raise UsageError("--auto and --dry-run exclude each other; --disable-auto stands alone")
    _check_head(head)
    strategy: RequestedStrategy | None = (
        "squash" if squash else "rebase" if rebase else "merge" if merge else None
    )
    repo, proposal = find(ctx, number)
    _require_head(head, proposal)
    if disable_auto:
        done = ctx.api.send(merges.AUTO_OFF, id=repo.id, n=str(proposal.number))
        was = "no longer merges by itself" if proposal.auto_merge else "had no auto-merge"
        sentence = f"{format_title(done)} {was}"
        ctx.out.done(sentence, _unmerged_record(done), COLUMNS, value=str(proposal.number))
        return
    way_back = ""
    if delete_branch and not proposal.cross_repository and strategy in REPLACES:
        way_back = confirm_unheld(ctx, repo, "branch", proposal.head, ask=not dry_run)
    waits = auto and (proposal.draft or bool(proposal.blocked_by))
    key = signing_key(ctx.api, ctx.obj.sessions)
    body = MergePrepareRequest(
        device_key_id=key.id,
        strategy=strategy,
        message=message.strip() or None,
        expected_head=proposal.head_seal,
        expected_base=proposal.base_seal,
        auto=waits,
    )
    path = {"id": repo.id, "n": str(proposal.number)}
    prepared = ctx.api.send(merges.PREPARE, body, **path)
    options = MergeOptions(proposal, strategy or "fast_forward", body.message)
    signed = signatures(ctx.api, repo.id, options, prepared, key)
    for name in prepared.merged:
        ctx.out.note(f"{name}: both sides changed it; joined by lines")
    if dry_run:
        record = _record(proposal, prepared, None, False)
        if way_back:
            ctx.out.note(f"deleting {proposal.head} would leave its seals on no branch or tag; {way_back}")
        changed = path_list(_changed_paths(prepared))
        sentence = (
            f"Would merge {format_title(proposal)} into {proposal.base}: {changed or 'no file changes'}"
        )
        ctx.out.done(sentence, record, COLUMNS, value=str(proposal.number))
        return
    finish = MergeFinalizeRequest(
        prepare_id=prepared.prepare_id,
        device_key_id=key.id,
        signatures=signed,
        delete_branch=delete_branch,
    )
    if waits:
        if way_back:
            ctx.out.note(f"{proposal.head} is deleted when it lands; then {way_back}")
        done = ctx.api.send(merges.AUTO, finish, **path)
        codes, needs = (["draft"] if proposal.draft else []) + proposal.blocked_by, proposal.needs
        blocks = "; ".join(reasons_to_wait(codes, needs.approvals, needs.missing))
        sentence = f"{format_title(proposal)} lands on {proposal.base} when nothing blocks it; now: {blocks}"
        record = {**_record(proposal, prepared, None, False), "auto": True}
        ctx.out.done(sentence, record, COLUMNS, value=str(proposal.number))
        return
    done = ctx.api.send(merges.FINALIZE, finish, **path)
    deleted = delete_branch and _report_deletion(ctx, repo, proposal, way_back)
    how = f"{HOW[prepared.strategy]}, {count(len(prepared.seals), 'seal')}"
    sentence = (
        f"Merged {format_title(proposal)} into {proposal.base} ({how}): {(done.merged_seal or '')[:12]}"
    )
    sentence += f"; deleted branch {proposal.head}" if deleted else ""
    record = _record(proposal, prepared, done.merged_seal, deleted)
    ctx.out.done(sentence, record, COLUMNS, value=str(proposal.number))


def _check_head(head: str) -> None:
    if head and not SEAL_ID.fullmatch(head):
        raise UsageError(f"--head takes the id of a seal, {HEAD_DIGITS} to 64 hex digits")


def _require_head(head: str, proposal: Proposal) -> None:
    """Raise HeadMoved unless `head` is the id of the proposal's newest seal, or the beginning of that id. ""
    allows any seal."""
    if not proposal.head_seal.startswith(head):
        raise HeadMoved(proposal.number, proposal.head_seal)


@answers(COLUMNS)
def update_branch(ctx: Ctx, number: Number = "", message: Message = "", dry_run: DryRun = False) -> None:
    """Bring the base of a proposal into its branch

    The branch gets one more seal, which this machine computes and signs. Files that both sides changed are
    merged by lines; if that is not possible, the command names the files and merges nothing.

    Examples:
    svc pr update-branch 12
    svc pr update-branch --dry-run
    """
    repo, proposal = find(ctx, number)
    key = signing_key(ctx.api, ctx.obj.sessions)
    body = UpdatePrepareRequest(
        device_key_id=key.id,
        message=message.strip() or None,
        expected_head=proposal.head_seal,
        expected_base=proposal.base_seal,
    )
    path = {"id": repo.id, "n": str(proposal.number)}
    prepared = ctx.api.send(merges.UPDATE_PREPARE, body, **path)
    signed = signatures(ctx.api, repo.id, MergeOptions(proposal, "update", body.message), prepared, key)
    for name in prepared.merged:
        ctx.out.note(f"{name}: both sides changed it; joined by lines")
    files = path_list(_changed_paths(prepared)) or "no file changes"
    if dry_run:
        record = _record(proposal, prepared, None, False)
        sentence = f"Would bring {proposal.base} into {proposal.head}: {files}"
        ctx.out.done(sentence, record, COLUMNS, value=str(proposal.number))
        return
    finish = UpdateFinalizeRequest(prepare_id=prepared.prepare_id, device_key_id=key.id, signatures=signed)
    ctx.api.send(merges.UPDATE_FINALIZE, finish, **path)
    seal = prepared.seals[-1].digest
    if _is_on_branch(ctx, repo, proposal.head):
        ctx.out.note("to have it in this folder: svc pull")
    sentence = f"Brought {proposal.base} into {proposal.head}: {seal[:12]}, {files}"
    ctx.out.done(sentence, _record(proposal, prepared, seal, False), COLUMNS, value=str(proposal.number))


def _is_on_branch(ctx: Ctx, repo: Repo, branch: str) -> bool:
    """Return whether the folder is linked to this branch of the repository."""
    linked = ctx.obj.linked
    return linked is not None and (linked[1].repo_id, linked[1].branch) == (repo.id, branch)


def _report_deletion(ctx: Ctx, repo: Repo, proposal: Proposal, way_back: str) -> bool:
    """Print whether `svc pr merge --delete-branch` has deleted the branch, and the next step. Returns whether
    the branch is deleted. `way_back` is the command that creates the branch again, which is printed; "" means
    that there is no such command."""
    if proposal.cross_repository:
        ctx.out.note(f"branch {proposal.head} stays: it is in another repository")
        return False
    try:
        branch = ctx.api.send(refs.GET, id=repo.id, type="branch", name=proposal.head)
    except NotFound:
        if way_back:
            ctx.out.note(way_back)
        if _is_on_branch(ctx, repo, proposal.head):
            ctx.out.note(f"this folder is on the deleted branch; run: svc switch {proposal.base}")
        return True
    stays = "is protected" if branch.protected else "has unsealed edits"
    ctx.out.note(f"branch {proposal.head} stays: it {'is the default branch' if branch.default else stays}")
    return False


def _changed_paths(prepared: PreparedMerge) -> list[str]:
    return sorted({change.path for seal in prepared.seals for change in seal.changes})


def _record(
    proposal: Proposal, prepared: PreparedMerge, seal: str | None, deleted: bool
) -> dict[str, object]:
    return {
        "number": proposal.number,
        "strategy": prepared.strategy,
        "base": proposal.base,
        "seal": seal,
        "seals": [prepared_seal.digest for prepared_seal in prepared.seals],
        "changed": _changed_paths(prepared),
        "merged": prepared.merged,
        "branch_deleted": deleted,
        "auto": False,
    }


def _unmerged_record(proposal: Proposal) -> dict[str, object]:
    """Return the command's answer for a proposal whose automatic merge was turned off."""
    return {
        "number": proposal.number,
        "strategy": None,
        "base": proposal.base,
        "seal": None,
        "seals": [],
        "changed": [],
        "merged": [],
        "branch_deleted": False,
        "auto": False,
    }
