"""The command `svc push`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from time import monotonic
from typing import Annotated

import typer

from localstore.core.errors import ClientError, UsageError
from localstore.core.model import protection as protections
from localstore.core.model.limits import MIB
from localstore.core.model.protection import matching, refusal
from localstore.core.paths import terminal_safe
from localstore.core.words import count
from localstore.errors import EditsConflict, UnpulledSeal
from localstore.progress import silent
from localstore.sync.held_back import new_git_ignored
from localstore.sync.open_merge import find_unresolved, open_merge
from localstore.sync.working_copy import WorkingCopy
from svc.cmd.frame.context import Ctx
from svc.cmd.frame.options import DryRun
from svc.cmd.frame.working_copy import (
    conflict_record,
    handles,
    note_conflicts,
    note_held_back,
    note_left_out,
    note_merged,
    note_skipped,
    path_list,
    reason_with_sizes,
    skipped_record,
)
from svc.console import Column, answers
from svc.console.table import size
from svc.flows.diff import diff
from svc.flows.merge.resolve import require_no_conflicts
from svc.flows.place.folder import copy_for_sending
from svc.flows.place.known_seals import remember
from svc.flows.push import Agreed, PushResult
from svc.flows.push import push as push_copy

COLUMNS = (
    Column("seal", kind="id"),
    Column("sent"),
    Column("removed"),
    Column("skipped"),
    Column("refused"),
    Column("live_by"),
    Column("conflicts"),
    Column("bytes", kind="size"),
    Column("size", kind="size"),
    Column("ignored"),
)

LISTED = 200  # paths of each kind that the editor shows


@answers(COLUMNS)
def push(
    ctx: Ctx,
    message: Annotated[str, typer.Option("-m", "--message", metavar="MSG", help="What the seal says")] = "",
    no_delete: Annotated[
        bool, typer.Option("--no-delete", help="Keep files on the branch that were deleted here")
    ] = False,
    dry_run: DryRun = False,
    strict: Annotated[
        bool,
        typer.Option("--strict", help="Exit with 1 if a file was skipped or refused; the rest is sealed"),
    ] = False,
) -> None:
    """Send your changes live and seal them with a message

    Every changed file is sent to the branch. Then the state of the whole branch is sealed, which makes a
    signed commit. If the branch has a seal that you have not pulled, the push is refused; pull first. The
    first push of a machine registers its device key.

    A push that removes more than half of a branch of at least 100 files asks first, and needs --yes without a
    terminal. While a conflict is unresolved, nothing is sent.

    Without -m your editor opens (VISUAL, EDITOR) with a list of what would be sent. In a pipe the id of the
    branch's newest seal is printed, even if there was nothing to seal.

    Examples:
    svc push -m "Read the header once"
    svc push
    svc push -m "Add the logo" --no-delete
    svc push --dry-run
    svc push -m "Nightly" --strict
    """
    started = monotonic()
    if message.strip() or dry_run:
        result = _push(ctx, message, no_delete, dry_run)
    else:
        result = _plan(ctx, no_delete)
        if result.unsealed:
            with _message_from_editor(ctx, result) as message:
                started = monotonic()
                result = _push(ctx, message, no_delete)
        else:
            result.dry_run = False
    note_skipped(ctx, result.skipped, result.dry_run)
    note_left_out(ctx, result.tracked, result.warnings)
    if result.executable:
        names = ", ".join(result.executable[:3]) + (", …" if len(result.executable) > 3 else "")
        files = count(len(result.executable), "file")
        lose = f"{files} will not be executable elsewhere ({terminal_safe(names)})"
        ctx.out.note(f"{lose}; to list them in .svc.yaml: svc repo executable --write")
    if result.built_in and not result.dry_run:
        rules = ", ".join(
            f"{rule.removeprefix('built-in ')} ({many})" for rule, many in result.built_in.items()
        )
        ctx.out.note(f"left out by built-in rules: {rules}; svc status --ignored lists them")
    for item in result.ignored:
        ctx.out.note(f"ignored {item.path}: {item.rule}")
    for kept_as, path in result.unresolved.items():
        goes = "would be sent" if result.dry_run else "is sent"
        ctx.out.note(
            f"{terminal_safe(kept_as)} {goes} too: your version of {terminal_safe(path)}, whose conflict "
            f"is not resolved; svc resolve {terminal_safe(path)} ends it"
        )
    note_merged(ctx, result.merged, result.dry_run)
    note_conflicts(ctx, result.conflicts, result.dry_run)
    for path, reason in result.refused.items():
        ctx.out.note(f"{'would be refused:' if result.dry_run else 'refused'} {path}: {reason}")
    if result.size >= MIB and not result.dry_run:
        ctx.out.note(_traffic(result, monotonic() - started))
    if result.seal is not None and ctx.obj.linked is not None:
        remember(ctx.obj.home, ctx.obj.linked[1].repo_id, [result.seal])
    value = None if result.dry_run else result.seal or result.head or ""
    ctx.out.done(_sentence(result), _record(result), COLUMNS, value=value)
    if strict and (result.skipped or result.refused):
        files = count(len(result.skipped) + len(result.refused), "file")
        leaves = "would be left out, and --strict is" if result.dry_run else "left out, and --strict was"
        raise _LeftOut(f"{files} {leaves} given")


class _LeftOut(ClientError):
    """Raised if a push with --strict did not send everything."""


def _push(
    ctx: Ctx, message: str, no_delete: bool, dry_run: bool = False, confirmed: bool = False
) -> PushResult:
    """Push the folder, and return the result. If there are new files that git ignores for this user alone,
    asks first, unless `confirmed` is True."""
    ctx.out.goes_on = not dry_run
    with copy_for_sending(ctx.obj) as copy:
        merge = open_merge(copy)
        if merge is None or (
            merge.whole and not find_unresolved(copy, merge)
        ):  # else its refusal names the merge
            require_no_conflicts(copy)
        copy.sends_git_ignored = confirmed
        held = [] if dry_run or confirmed else new_git_ignored(copy)
        if not held:
            return _push_from(ctx, copy, message, no_delete, dry_run)
    note_held_back(ctx, held)  # the folder is not locked while the user is asked
    ctx.confirm(f"Sending {count(len(held), 'file')} that git ignores for you alone")
    return _push(ctx, message, no_delete, confirmed=True)


def _push_from(ctx: Ctx, copy: WorkingCopy, message: str, no_delete: bool, dry_run: bool) -> PushResult:
    try:
        return push_copy(copy, message, no_delete=no_delete, dry_run=dry_run, agreed=_ask_removal(ctx))
    except UnpulledSeal:
        _require_unprotected(ctx, copy)
        raise
    except EditsConflict as error:
        note_conflicts(ctx, error.conflicts, dry_run)
        raise


def _ask_removal(ctx: Ctx) -> Agreed:
    return lambda removed, tree: ctx.confirm(f"Removing {removed} of the branch's {tree} files")


def _require_unprotected(ctx: Ctx, copy: WorkingCopy) -> None:
    """Raise BranchProtected if the folder has edits but a protection rule forbids writing to its branch."""
    branch = copy.repo.branch
    rules = matching(ctx.reader.items(protections.LIST, id=copy.repo.repo_id), branch)
    refused = refusal(branch, rules, "write")
    if refused is not None and any(diff(copy, [], None)):
        raise refused


def _plan(ctx: Ctx, no_delete: bool) -> PushResult:
    """Do a dry run of the push, and return its result. The editor shows it while the user writes the message.
    Raises UsageError if there is no terminal for an editor."""
    if not ctx.out.interactive:
        raise UsageError('a seal needs a message; add -m "What changed"')
    progress, ctx.obj.progress = ctx.obj.progress, silent  # nothing is sent before the message is there
    try:
        return _push(ctx, "", no_delete, dry_run=True)
    finally:
        ctx.obj.progress = progress


@contextmanager
def _message_from_editor(ctx: Ctx, planned: PushResult) -> Iterator[str]:
    """A context that yields the message that the user wrote in an editor. While they write, the folder is not
    locked. If an error ends the context, the message is kept in its file, whose name is printed."""
    from svc.cmd.frame.editor import edit_text

    with edit_text(_editor_remarks(planned), ctx.obj.environment) as (text, file):
        try:
            yield text
        except BaseException:
            ctx.out.note(f'your message is kept in {file}; to use it: svc push -m "$(grep -v ^# {file})"')
            raise


def _editor_remarks(planned: PushResult) -> list[str]:
    """Return the lines that the editor shows below the message. They say which branch is pushed to, and which
    files would be sent, removed or skipped."""
    lines = ["What the seal says. Lines with # are left out; an empty message sends nothing."]
    lines += ["", planned.where]
    skipped = [f"{item.path} ({reason_with_sizes(item)})" for item in planned.skipped]
    for title, paths in (("to send", planned.sent), ("to remove", planned.removed), ("to skip", skipped)):
        if paths:
            lines += ["", f"{title}:", *(f"  {path}" for path in paths[:LISTED])]
            lines += [f"  and {len(paths) - LISTED} more"] if len(paths) > LISTED else []
    if not planned.sent and not planned.removed:
        lines += ["", "Nothing is left to send; the live edits of the branch will be sealed."]
    return [terminal_safe(line) for line in lines]


def _sentence(result: PushResult) -> str:
    if result.dry_run:
        files = _count_files(result.sent, result.removed)
        listed = [*result.sent, *(f"{path} (removed)" for path in result.removed)]
        if not result.unsealed:
            return _nothing_to_seal(result)
        return f"Would send {files}" + (f": {path_list(listed)}" if listed else "") + " and seal the branch"
    if result.seal is None:
        return _nothing_to_seal(result)
    paths_by: dict[str, list[str]] = {}
    for path, who in sorted(result.live_by.items()):
        paths_by.setdefault(handles(who), []).append(path)
    others = "; ".join(f"{people} in {path_list(paths)}" for people, paths in paths_by.items())
    also = f"; also live edits by {others}" if others else ""
    brings = " (svc pull brings them)" if result.lacking else ""
    return f"Sealed {result.seal[:12]}: {_count_files(result.sealed, result.unmade)}{also}{brings}"


def _nothing_to_seal(result: PushResult) -> str:
    if result.behind:
        return (
            f"Nothing to seal: others changed {path_list(result.behind)} on the branch; run: svc pull --merge"
        )
    equals = "has all that can be sent" if result.unlike else "equals this folder"
    return f"Nothing to seal: the branch {equals}"


def _count_files(files: list[str], removed: list[str]) -> str:
    sent = count(len(files), "file") if files or not removed else ""
    return ", ".join(part for part in (sent, f"{len(removed)} removed" if removed else "") if part)


def _traffic(result: PushResult, seconds: float) -> str:
    took = f"in {seconds:.1f} s" if seconds < 60 else f"in {seconds / 60:.0f} min"
    saved = result.size - result.bytes
    spared = f"; {size(saved)} were stored already or saved by compression" if saved >= MIB else ""
    return f"sent {size(result.bytes)} for {size(result.size)} of files {took}{spared}"


def _record(result: PushResult) -> dict[str, object]:
    return {
        "seal": result.seal,
        "sent": result.sent,
        "removed": result.removed,
        "skipped": [skipped_record(item) for item in result.skipped],
        "refused": result.refused,
        "live_by": result.live_by,
        "conflicts": [conflict_record(conflict) for conflict in result.conflicts],
        "bytes": result.bytes,
        "size": result.size,
        "ignored": [{"path": item.path, "rule": item.rule} for item in result.ignored],
    }
