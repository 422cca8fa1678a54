"""The command `svc merge`."""

from __future__ import annotations

from typing import Annotated

import typer

from localstore.core.errors import EXIT_FAILED, Conflict, UsageError
from localstore.core.paths import terminal_safe
from localstore.core.words import count
from localstore.errors import NoMerge
from localstore.sync.open_merge import open_merge, require_resolved
from svc.cmd.frame.context import Ctx
from svc.cmd.frame.options import DryRun
from svc.cmd.frame.working_copy import conflict_record, line_ranges, note_skipped, path_list
from svc.console import Column, answers
from svc.flows.common import ConflictCopy
from svc.flows.history.ancestry import find_bases
from svc.flows.merge import merge as flow
from svc.flows.merge.merge import MergeResult, Source
from svc.flows.merge.resolve import require_no_conflicts
from svc.flows.place.folder import copy_for_local_work, copy_for_pulling, copy_for_sending
from svc.flows.place.refs import resolve_ref
from svc.flows.push import push

COLUMNS = (
    Column("source", kind="id"),
    Column("seal", kind="id"),
    Column("written"),
    Column("removed"),
    Column("merged"),
    Column("conflicts"),
    Column("trash"),
)


@answers(COLUMNS)
def merge(
    ctx: Ctx,
    ref: Annotated[str, typer.Argument(metavar="BRANCH|TAG|SEAL", help="What to bring here")] = "",
    continue_: Annotated[bool, typer.Option("--continue", help="Push the resolved merge")] = False,
    abort: Annotated[bool, typer.Option("--abort", help="Put back what the merge changed")] = False,
    message: Annotated[
        str, typer.Option("-m", "--message", metavar="MSG", help="With --continue: what the seal says")
    ] = "",
    dry_run: DryRun = False,
) -> None:
    """Bring another branch into this folder, to be pushed

    The branch's changes since the common ancestor become edits of this folder. Texts that both sides changed
    are merged by lines and words. If that is not possible, the file gets the merged branch's version, and
    your version is kept as a copy beside it; svc resolve PATH ends such a conflict. Check the result, then
    run svc merge --continue, or svc push. The seal records the merge, so that a proposal of this branch does
    not meet the same conflicts again. Exits 1 if there are conflicts.

    Files with unsealed edits are not changed; the command refuses to merge, and you push those edits first.

    Examples:
    svc merge main
    svc merge main --dry-run
    svc merge --continue
    svc merge --abort
    """
    if bool(ref) + continue_ + abort != 1:
        raise UsageError("name a branch, tag or seal, or add --continue or --abort; one of these")
    if message and not continue_:
        raise UsageError("-m goes with --continue: a merge is sealed when it is pushed")
    if dry_run and not ref:
        raise UsageError("--dry-run goes with a branch, tag or seal")
    if abort:
        _abort(ctx)
    elif continue_:
        _continue(ctx, message)
    else:
        _merge(ctx, ref, dry_run)


def _merge(ctx: Ctx, ref: str, dry_run: bool) -> None:
    with copy_for_pulling(ctx.obj) as copy:
        head = flow.prepare(copy)
        repo = ctx.reader.repo.find_linked(copy.repo.repo_id, copy.repo.repo)
        source = resolve_ref(ctx.obj, repo, ref)
        if source.head is None:
            raise Conflict(f"branch {ref} has no seal, so there is nothing to merge")
        bases: list[str] = []
        if head is not None:
            bases = find_bases(ctx.reader, repo.id, head, source.head)
        merged = flow.bring(copy, Source(source.head, source.name, bases), dry_run)
    if merged.up_to_date:
        sentence = f"Nothing to merge: this branch has all of {source.name}"
        ctx.out.done(sentence, _record(merged), COLUMNS, value=merged.seal)
        return
    _note(ctx, merged)
    if dry_run:
        sentence = f"Would merge {source.name}: {_files(merged)}"
    elif merged.conflicts:
        first = terminal_safe(merged.conflicts[0].path)
        ctx.out.note(f"to end a conflict: svc resolve {first}; to undo the merge: svc merge --abort")
        stands = "conflict is" if len(merged.conflicts) == 1 else "conflicts are"
        sentence = f"Merged {source.name}, and {len(merged.conflicts)} {stands} left to resolve"
        if merged.written or merged.removed:
            changed, _, paths = _files(merged).partition(": ")
            sentence += f"; {changed} changed: {paths}"
    else:
        ctx.out.note("to seal it: svc merge --continue")
        sentence = f"Merged {source.name}: {_files(merged)}"
    ctx.out.done(sentence, _record(merged), COLUMNS, value=merged.seal)
    if merged.conflicts and not dry_run:
        ctx.exit(EXIT_FAILED)


def _continue(ctx: Ctx, message: str) -> None:
    with copy_for_sending(ctx.obj) as copy:
        merging = open_merge(copy)
        if merging is None:
            raise NoMerge
        require_resolved(copy, merging)
        require_no_conflicts(copy)
        pushed = push(copy, message.strip() or f"Merge {merging.name}")
    note_skipped(ctx, pushed.skipped)
    merged = MergeResult(merging.source, merging.name, pushed.sent, pushed.removed)
    record = _record(merged) | {"seal": pushed.seal}
    if pushed.seal is None:
        sentence = "Nothing to seal: the merge is sealed already"
        ctx.out.done(sentence, record, COLUMNS, value=pushed.head or "")
        return
    ctx.out.done(f"Sealed {pushed.seal[:12]}: merged {merging.name}", record, COLUMNS, value=pushed.seal)


def _abort(ctx: Ctx) -> None:
    with copy_for_local_work(ctx.obj) as copy:
        undone = flow.abort(copy)
    if undone.trash:
        ctx.out.note(f"what the merge had written is in {undone.trash}")
    files = count(len(undone.written) + len(undone.removed), "file")
    sentence = f"Undid the merge of {undone.name}: {files} put back"
    ctx.out.done(sentence, _record(undone), COLUMNS, value=undone.seal)


def _note(ctx: Ctx, result: MergeResult) -> None:
    joined, stays = ("would be merged", "would stay") if result.dry_run else ("merged", "stays")
    for path in result.merged:
        ctx.out.note(f"{path}: both sides changed it; {joined}")
    for path in result.kept:
        ctx.out.note(f"{path}: one side deleted it and the other edited it; the edit {stays}")
    verb = "would be kept" if result.dry_run else "is kept"
    for conflict in result.conflicts:
        ctx.out.note(
            f"conflict in {conflict.path}{_stands(conflict, result.name)} {verb} whole as {conflict.kept_as}"
        )
    if result.trash:
        ctx.out.note(f"the replaced files are in {result.trash}")


def _stands(conflict: ConflictCopy, source: str) -> str:
    """Return the words that follow the path in a message about a conflict. They say whether one side has a
    folder there, and whose version became the copy."""
    if conflict.folder == "theirs":
        return f": {source} has a folder there; your file"
    if conflict.folder == "mine":
        return f": you have a folder there; the file of {source}"
    return f"{_lines(conflict)}: your version"


def _lines(conflict: ConflictCopy) -> str:
    if conflict.lines is None or conflict.kept_lines is None:
        return ""
    return f" (its {line_ranges(conflict.lines)}, your {line_ranges(conflict.kept_lines)})"


def _files(result: MergeResult) -> str:
    paths = [*result.written, *(f"{path} (removed)" for path in result.removed)]
    return f"{count(len(paths), 'file')}{': ' if paths else ''}{path_list(paths)}"


def _record(result: MergeResult) -> dict[str, object]:
    return {
        "source": result.seal,
        "seal": None,
        "written": result.written,
        "removed": result.removed,
        "merged": result.merged,
        "conflicts": [conflict_record(conflict) for conflict in result.conflicts],
        "trash": str(result.trash) if result.trash else None,
    }
