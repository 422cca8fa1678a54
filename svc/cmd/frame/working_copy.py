"""Messages that commands print about a working copy: paths, and files that were skipped, merged or in
conflict."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from localstore.core.paths import terminal_safe
from localstore.folder.scan_result import Skipped
from svc.cmd.frame.context import Ctx
from svc.console.table import size
from svc.flows.common import ConflictCopy, hidden_words

if TYPE_CHECKING:
    from localstore.sync.held_back import HeldBack
    from localstore.sync.working_copy import WorkingCopy
    from svc.flows.ignored_files import IgnoredFile

MAY_WRITE = ("owner", "admin", "write")
PATHS_NAMED = 20  # paths that a summary names before it counts the rest


def path_list(paths: Iterable[str]) -> str:
    """Return paths as text for a sentence. If there are more than PATHS_NAMED paths, only the first are
    named, and the others are counted: `a, b and 5 more`."""
    all_paths = list(paths)
    more = len(all_paths) - PATHS_NAMED
    return ", ".join(all_paths[:PATHS_NAMED]) + (f" and {more} more" if more > 0 else "")


def note_skipped(ctx: Ctx, skipped: Iterable[Skipped], dry_run: bool = False) -> None:
    """Print the skipped files with their reasons. With `dry_run`, the message says "would skip"."""
    for item in skipped:
        ctx.out.note(f"{'would skip' if dry_run else 'skipped'} {item.path}: {reason_with_sizes(item)}")


def note_left_out(ctx: Ctx, tracked: Sequence[IgnoredFile], warnings: Sequence[str]) -> None:
    """Print the ignored files that git tracks, and the `warnings`, such as warnings about names that some
    systems cannot store."""
    for item in tracked[:PATHS_NAMED]:
        way = f"; to send it: add {item.keep} to .svcignore" if item.keep else ""
        ctx.out.note(f"git tracks {item.path}, and {item.rule} leaves it out{way}")
    for warning in warnings[:PATHS_NAMED]:
        ctx.out.note(warning)
    if len(tracked) > PATHS_NAMED:
        ctx.out.note(f"and {len(tracked) - PATHS_NAMED} more of git's files; see: svc status --ignored")
    if len(warnings) > PATHS_NAMED:
        ctx.out.note(f"and {len(warnings) - PATHS_NAMED} more names that not every system can hold")


def note_held_back(ctx: Ctx, held: Sequence[HeldBack]) -> None:
    """Print the new files that git ignores only for this user, and how to exclude them from svc."""
    for item in held[:PATHS_NAMED]:
        ctx.out.note(f"git ignores {terminal_safe(item.path)} for you ({item.rule}), and svc would send it")
    if len(held) > PATHS_NAMED:
        ctx.out.note(f"and {len(held) - PATHS_NAMED} more; svc repo git-ignored lists them")
    lines = sorted({terminal_safe(item.line) for item in held})
    ctx.out.note(
        f"to keep them here, add to .svcignore: {path_list(lines)}; svc repo git-ignored --write does"
    )


def reason_with_sizes(item: Skipped) -> str:
    """Return the reason why a file was skipped. If the file is too large, the reason has both sizes and a
    remedy. If the branch keeps older files because of the skipped file, the reason ends with their names."""
    if item.cap is None:
        return item.reason + item.kept_words
    remedy = f"; {item.remedy}" if item.remedy else ""
    return f"{size(item.size)}, {item.reason} ({size(item.cap)}){remedy}{item.kept_words}"


def skipped_record(item: Skipped) -> dict[str, object]:
    return {
        "path": item.path,
        "reason": item.reason,
        "size": item.size,
        "cap": item.cap,
        "keeps": list(item.keeps),
    }


def handles(who: Iterable[str]) -> str:
    """Return the handles for a sentence: `@ann, @bob`."""
    return ", ".join(f"@{handle}" for handle in who)


def by_whom(live: Mapping[str, list[str]]) -> str:
    """Return the paths in `live` for a sentence, each with the handles of the people who edited it: `x.py (by
    @ann), y.py`."""
    return path_list(path + (f" (by {handles(who)})" if who else "") for path, who in sorted(live.items()))


def note_merged(ctx: Ctx, merged: Mapping[str, str | None], dry_run: bool = False) -> None:
    """Print which texts were merged with edits of others. `merged` maps each path to the handle of the other
    author, or to None if that author is unknown. With `dry_run`, the message says "would be merged"."""
    joined = "would be merged" if dry_run else "merged"
    for path, by in merged.items():
        ctx.out.note(f"{path}: {joined} with " + (f"@{by}'s edit" if by else "edits by others"))


def note_conflicts(ctx: Ctx, conflicts: Iterable[ConflictCopy], dry_run: bool = False) -> None:
    """Print the conflict copies. With `dry_run`, the message says "would be kept"."""
    for conflict in conflicts:
        ctx.out.note(_conflict(conflict, "would be kept" if dry_run else "is kept"))


def note_hidden(ctx: Ctx, hidden: Mapping[str, Path | None], dry_run: bool = False) -> None:
    """Print which files left the folder because their paths are private now, and where the files are.
    `hidden`: path → trash folder. With `dry_run`, the message says "would move"."""
    if hidden:
        ctx.out.note(hidden_words(hidden, dry_run))


@contextmanager
def naming_hidden(ctx: Ctx, copy: WorkingCopy) -> Iterator[None]:
    """A context in which a folder is pulled or switched. If an error ends it, the files that have left the
    folder by then because their paths are private now are printed."""
    try:
        yield
    except BaseException:
        note_hidden(ctx, copy.hidden)
        raise


def _conflict(conflict: ConflictCopy, verb: str) -> str:
    if conflict.folder == "theirs":
        return (
            f"conflict in {conflict.path}: the branch has a folder there; "
            f"your version {verb} as {conflict.kept_as}"
        )
    if conflict.folder == "mine":
        return (
            f"conflict in {conflict.path}: the branch has a file there; "
            f"your folder {verb} as {conflict.kept_as}"
        )
    if conflict.deleted:
        return (
            f"conflict in {conflict.path}: it was deleted on the branch; "
            f"your version {verb} as {conflict.kept_as}"
        )
    if conflict.lines is None or conflict.kept_lines is None:
        return f"conflict in {conflict.path}: your version {verb} as {conflict.kept_as}"
    whose = f"@{conflict.by}'s version" if conflict.by else "the branch's version"
    return (
        f"conflict in {conflict.path}, {line_ranges(conflict.lines)}: {whose} stays; "
        f"yours ({line_ranges(conflict.kept_lines)}) {verb} whole as {conflict.kept_as}"
    )


def line_ranges(ranges: str) -> str:
    """Return line ranges for a sentence: `line 5`, `lines 2-4, 9`."""
    return f"line {ranges}" if ranges.isdecimal() else f"lines {ranges}"


def conflict_record(conflict: ConflictCopy) -> dict[str, object]:
    return {
        "path": conflict.path,
        "kept_as": conflict.kept_as,
        "lines": conflict.lines,
        "kept_lines": conflict.kept_lines,
        "by": conflict.by,
    }
